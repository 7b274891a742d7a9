#include "coordinator/service/coordinator_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

namespace fixit {
namespace {

// What a standby that finds the store, the journal or Redis taken or away may find otherwise a moment later.
bool may_pass(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kConflict:
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kFull:
    case ErrorCode::kStale:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<CoordinatorService>> CoordinatorService::start(Options options, const Clock& clock) {
  std::unique_ptr<CoordinatorService> service(new CoordinatorService(std::move(options), clock));
  FIXIT_ASSIGN_OR_RETURN(service->lead_redis_, Redis::connect(service->options_.redis));
  service->thread_ = std::thread([raw = service.get()] { raw->run(); });
  return service;
}

CoordinatorService::CoordinatorService(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

CoordinatorService::~CoordinatorService() {
  stop();
}

void CoordinatorService::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status CoordinatorService::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool CoordinatorService::wait(int64_t milliseconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return stopping_; });
  return !stopping_;
}

void CoordinatorService::run() {
  const int64_t renew_ms = std::max<int64_t>(options_.term_ms / 5, 10);
  bool said_standby = false;
  while (wait(0)) {
    auto leadership = Leadership::take(*lead_redis_, {options_.id, options_.term_ms, renew_ms}, clock_);
    if (!leadership.ok() || !*leadership) {
      if (!said_standby) {
        const std::string reason =
            leadership.ok() ? "another coordinator leads" : leadership.status().to_string();
        spdlog::info("coordinator {} stands by: {}", options_.id, reason);
      }
      said_standby = true;
      wait(renew_ms);
      continue;
    }
    said_standby = false;
    const Status status = lead(**leadership);
    leading_ = false;
    if (const Status resigned = (*leadership)->resign(); !resigned.ok())
      spdlog::warn("coordinator {}: the lead ends with its term: {}", options_.id, resigned.to_string());
    if (!status.ok() && !may_pass(status)) {
      const std::lock_guard lock(mutex_);
      status_ = status;
      break;
    }
    if (!status.ok()) {
      spdlog::warn("coordinator {} cannot lead now: {}", options_.id, status.to_string());
      wait(renew_ms);
    }
  }
  ended_ = true;
}

Status CoordinatorService::lead(Leadership& leadership) {
  LeaderTerm::Options term_options;
  term_options.site = options_.site;
  term_options.redis = options_.redis;
  term_options.coordinator = options_.id;
  term_options.epoch = leadership.epoch();
  term_options.retry = options_.retry;
  term_options.min_free_bytes = options_.min_free_bytes;
  term_options.stall_ms = options_.stall_ms;
  FIXIT_ASSIGN_OR_RETURN(const std::unique_ptr<LeaderTerm> term, LeaderTerm::start(term_options, clock_));
  FIXIT_RETURN_IF_ERROR(leadership.publish(term->endpoint()));
  leading_ = true;
  spdlog::info("coordinator {} leads epoch {} at {}", options_.id, leadership.epoch(), term->endpoint());
  constexpr int64_t kLookMs = 50;  // how long a lost lead may go unnoticed
  while (leadership.held() && wait(kLookMs)) {
  }
  return {};
}

}  // namespace fixit

#include "coordinator/collect/leadership.h"

#include <spdlog/spdlog.h>

namespace fixit {

Result<std::unique_ptr<Leadership>> Leadership::take(Redis& redis, Options options, const Clock& clock) {
  LeaderInfo info;
  info.coordinator = options.coordinator;
  const int64_t since_ms = clock.steady_ms();
  FIXIT_ASSIGN_OR_RETURN(const bool leads, Registry(redis).lead(info, options.term_ms));
  if (!leads) return std::unique_ptr<Leadership>();
  return std::unique_ptr<Leadership>(new Leadership(redis, std::move(options), clock, info, since_ms));
}

Leadership::Leadership(Redis& redis, Options options, const Clock& clock, LeaderInfo info, int64_t since_ms)
    : registry_(redis),
      options_(std::move(options)),
      clock_(clock),
      epoch_(info.epoch),
      info_(std::move(info)),
      renewed_ms_(since_ms) {
  ticker_ =
      std::make_unique<Ticker>(std::chrono::milliseconds(options_.renew_ms), [this] { return renew(); });
}

Leadership::~Leadership() {
  ticker_.reset();
}

Status Leadership::publish(const std::string& endpoint) {
  {
    const std::lock_guard lock(mutex_);
    info_.endpoint = endpoint;
  }
  renew();
  if (!held())
    return Status(ErrorCode::kStale, "the lead was lost before the broker's endpoint was published");
  return {};
}

Status Leadership::resign() {
  ticker_.reset();
  lost_ = true;
  const std::lock_guard lock(mutex_);
  return registry_.resign(info_);
}

bool Leadership::renew() {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  const int64_t before_ms = clock_.steady_ms();
  LeaderInfo info = info_;
  const auto leads = registry_.lead(info, options_.term_ms);
  if (leads.ok() && *leads && info.epoch == epoch_) {
    renewed_ms_ = before_ms;
    return false;
  }
  if (leads.ok()) {
    // Another leads, or Redis forgot us and opened a new epoch that no journal segment of ours is named by.
    spdlog::error("the lead of epoch {} is lost: another coordinator leads, or Redis lost its data", epoch_);
    lost_ = true;
  } else if (clock_.steady_ms() - renewed_ms_ >= options_.term_ms) {
    spdlog::error("the lead of epoch {} is lost: it could not be renewed for {} ms ({})", epoch_,
                  options_.term_ms, leads.status().to_string());
    lost_ = true;
  }
  return false;
}

}  // namespace fixit

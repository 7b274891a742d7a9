#include "worker/engine/claimer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/base/clock.h"
#include "core/config/config_files.h"

namespace fixit {
namespace {

constexpr std::chrono::milliseconds kDoorbellWait{500};
constexpr std::chrono::milliseconds kOutagePause{500};
constexpr std::chrono::milliseconds kNoLanesPause{200};
constexpr int64_t kLanesAgeMs = 1000;
constexpr int kBatch = 64;  // jobs of one claim: other workers get their share

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return name_matches(pattern, name); });
}

}  // namespace

Claimer::Claimer(Redis& redis, Redis& blocking, Options options)
    : queue_(redis), blocking_(blocking), options_(std::move(options)) {
  thread_ = std::thread([this] { serve(); });
}

Claimer::~Claimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Claimer::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

bool Claimer::pause(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return stopping_ || woken_; });
  woken_ = false;
  return !stopping_;
}

bool Claimer::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

std::vector<Lane> Claimer::served_lanes() {
  auto lanes = queue_.lanes();
  if (!lanes.ok()) {
    spdlog::warn("no lanes: {}", lanes.status().to_string());
    return {};
  }
  std::erase_if(*lanes, [this](const Lane& lane) {
    const bool gpu = lane.gpu == "none" || options_.gpus.empty() || matches_any(options_.gpus, lane.gpu);
    const bool model = options_.models.empty() || matches_any(options_.models, lane.model);
    return !gpu || !model;
  });
  return *std::move(lanes);
}

void Claimer::serve() {
  std::vector<Lane> lanes;
  int64_t lanes_read = -kLanesAgeMs;
  while (!stopping()) {
    const int room = options_.room();
    if (room <= 0) {
      pause(kOutagePause);
      continue;
    }
    const int64_t now = Clock::system().steady_ms();
    if (lanes.empty() || now - lanes_read >= kLanesAgeMs) {
      lanes = served_lanes();
      lanes_read = now;
    }
    if (lanes.empty()) {
      pause(kNoLanesPause);
      continue;
    }
    auto claimed = queue_.claim(lanes, std::min(room, kBatch), options_.worker, options_.lease);
    if (!claimed.ok()) {
      spdlog::warn("nothing claimed: {}", claimed.status().to_string());
      pause(kOutagePause);
      continue;
    }
    std::rotate(lanes.begin(), lanes.begin() + 1, lanes.end());  // no lane is always served last
    if (!claimed->empty()) {
      options_.on_claimed(*std::move(claimed));
    } else if (const Status status = queue_.wait_for_work(blocking_, lanes, kDoorbellWait); !status.ok()) {
      pause(kOutagePause);
    }
  }
}

}  // namespace fixit

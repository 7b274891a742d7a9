#include "worker/engine/lease_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "core/base/clock.h"

namespace fixit {
namespace {

constexpr int64_t kAnnounceMs = 1000;

}  // namespace

std::string attempt_of(const Lease& lease) {
  return lease.job + "/" + lease.token;
}

LeaseKeeper::LeaseKeeper(Redis& redis, WorkerInfo worker, std::chrono::milliseconds lease,
                         std::function<void(const std::string&, LeaseState)> on_lost)
    : queue_(redis),
      registry_(redis),
      worker_(std::move(worker)),
      lease_(lease),
      on_lost_(std::move(on_lost)) {
  thread_ = std::thread([this] { serve(); });
}

LeaseKeeper::~LeaseKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  (void)registry_.remove_peer(worker_.id);  // else its entry ages out
}

void LeaseKeeper::add(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  leases_.emplace(attempt_of(lease), lease);
}

void LeaseKeeper::remove(const std::string& attempt) {
  const std::lock_guard lock(mutex_);
  leases_.erase(attempt);
}

int LeaseKeeper::held() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(leases_.size());
}

void LeaseKeeper::serve() {
  const int64_t renew_every = std::max<int64_t>(1, lease_.count() / 3);
  int64_t next_renewal = Clock::system().steady_ms() + renew_every;
  int64_t next_announcement = 0;
  for (;;) {
    const int64_t now = Clock::system().steady_ms();
    if (now >= next_announcement) {
      announce();
      next_announcement = now + kAnnounceMs;
    }
    if (now >= next_renewal) {
      const bool renewed = renew();
      next_renewal =
          now + (renewed ? renew_every : renew_every / 4 + 1);  // a short outage must not cost leases
    }
    std::unique_lock lock(mutex_);
    const int64_t wait = std::min(next_renewal, next_announcement) - Clock::system().steady_ms();
    if (changed_.wait_for(lock, std::chrono::milliseconds(std::max<int64_t>(wait, 0)),
                          [this] { return stopping_; }))
      return;
  }
}

bool LeaseKeeper::renew() {
  std::vector<Lease> leases;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [attempt, lease] : leases_) leases.push_back(lease);
  }
  if (leases.empty()) return true;
  const auto states = queue_.heartbeat(leases, lease_);
  if (!states.ok()) {
    spdlog::warn("leases of {} jobs were not renewed: {}", leases.size(), states.status().to_string());
    return false;
  }
  for (size_t i = 0; i < leases.size() && i < states->size(); ++i) {
    if ((*states)[i] == LeaseState::kKept) continue;
    {
      const std::lock_guard lock(mutex_);
      if (!leases_.contains(attempt_of(leases[i]))) continue;  // ended meanwhile
      if ((*states)[i] == LeaseState::kLost) leases_.erase(attempt_of(leases[i]));
    }
    on_lost_(attempt_of(leases[i]), (*states)[i]);
  }
  return true;
}

void LeaseKeeper::announce() {
  worker_.held = held();
  worker_.heartbeat_ms = Clock::system().unix_ms();
  if (const Status status = registry_.beat_worker(worker_); !status.ok())
    spdlog::debug("worker not announced: {}", status.to_string());
}

}  // namespace fixit

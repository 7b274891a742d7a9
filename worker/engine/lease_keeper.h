// Keeps leases and the worker's own entry alive, on a thread that never waits on job work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/queue/job_queue.h"
#include "core/queue/registry.h"

namespace fixit {

// Names one attempt at one job. (The token alone does not: jobs claimed together share it.)
std::string attempt_of(const Lease& lease);

class LeaseKeeper {
 public:
  // `redis` is a connection of the keeper's own. All leases are renewed in one batch every third of a lease,
  // the worker is announced each second. `on_lost` is called on the keeper's thread for kLost (once, the
  // lease is then dropped) and kCancelled (at every renewal until remove()); it must not block.
  LeaseKeeper(Redis& redis, WorkerInfo worker, std::chrono::milliseconds lease,
              std::function<void(const std::string& attempt, LeaseState)> on_lost);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  ~LeaseKeeper();

  void add(const Lease& lease);
  void remove(const std::string& attempt);
  int held() const;

 private:
  void serve();
  bool renew();
  void announce();

  JobQueue queue_;
  Registry registry_;
  WorkerInfo worker_;
  const std::chrono::milliseconds lease_;
  const std::function<void(const std::string&, LeaseState)> on_lost_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::map<std::string, Lease> leases_;  // by attempt
  std::thread thread_;
};

}  // namespace fixit

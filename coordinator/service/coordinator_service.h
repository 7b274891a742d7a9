// A coordinator: stands by until it leads, leads until it no longer does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "coordinator/collect/leadership.h"
#include "coordinator/service/leader_term.h"
#include "core/base/clock.h"
#include "core/config/site_config.h"
#include "core/queue/job_queue.h"
#include "core/queue/redis.h"

namespace fixit {

// Thread-safe.
class CoordinatorService {
 public:
  struct Options {
    SiteConfig site;
    RedisAddress redis;
    std::string id;          // unique among coordinators
    int64_t term_ms = 5000;  // of the lead, renewed five times as often
    RetryPolicy retry;
    uint64_t min_free_bytes = 64u << 20;  // on the disks of store and journal; with less, claims stop
    int64_t stall_ms = 5000;              // see Chain
  };
  // Starts standing by. kUnavailable if Redis cannot be reached.
  static Result<std::unique_ptr<CoordinatorService>> start(Options options,
                                                           const Clock& clock = Clock::system());
  ~CoordinatorService();  // as stop()
  CoordinatorService(const CoordinatorService&) = delete;
  CoordinatorService& operator=(const CoordinatorService&) = delete;

  // Stops what runs, gives the lead away at once, and joins.
  void stop();
  bool leading() const { return leading_; }
  // Ok while it runs; afterwards why it ended by itself: a journal or store that cannot be opened.
  bool ended() const { return ended_; }
  Status status() const;

 private:
  CoordinatorService(Options options, const Clock& clock);
  void run();
  // One term; an error that no later attempt would mend ends the service.
  Status lead(Leadership& leadership);
  bool wait(int64_t milliseconds);  // false once stop() was called

  const Options options_;
  const Clock& clock_;
  std::unique_ptr<Redis> lead_redis_;
  std::atomic<bool> leading_{false};
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace fixit

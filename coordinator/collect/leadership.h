// Who leads: a term in Redis, renewed by a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "coordinator/collect/ticker.h"
#include "core/base/clock.h"
#include "core/queue/registry.h"

namespace fixit {

// Holds the lead from take() until it is lost or resigned. A leader that cannot renew counts its own term
// down from before its last successful renewal, so it stops no later than Redis gives the lead away.
class Leadership {
 public:
  struct Options {
    std::string coordinator;
    int64_t term_ms = 5000;
    int64_t renew_ms = 1000;
  };
  // Null if another leads. `redis` should serve nothing else: a renewal must not wait behind work.
  static Result<std::unique_ptr<Leadership>> take(Redis& redis, Options options, const Clock& clock);
  ~Leadership();  // stops renewing; the lead ends with its term unless resigned
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  int64_t epoch() const { return epoch_; }
  bool held() const { return !lost_; }  // thread-safe
  // Tells everyone where the broker is.
  Status publish(const std::string& endpoint);
  Status resign();

 private:
  Leadership(Redis& redis, Options options, const Clock& clock, LeaderInfo info, int64_t since_ms);
  bool renew();

  Registry registry_;
  const Options options_;
  const Clock& clock_;
  const int64_t epoch_;
  std::mutex mutex_;
  LeaderInfo info_;
  int64_t renewed_ms_;  // steady clock, taken before the call
  std::atomic<bool> lost_{false};
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace fixit

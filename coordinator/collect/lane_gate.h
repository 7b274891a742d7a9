// Which lanes must give no work, and why.
#pragma once

#include <map>
#include <set>
#include <string>

#include "coordinator/broker/broker.h"
#include "core/queue/job_queue.h"

namespace fixit {

// A lane is parked while nothing can be written, while no profiler of its GPU kind lives, or while the
// broker's queue for that kind is more than three quarters full (until it is half empty again), so that no
// model call is paid for a candidate that nobody can record or measure. Lanes that need no GPU ("none") are
// parked only for the first reason.
class LaneGate {
 public:
  explicit LaneGate(int max_queue) : max_queue_(max_queue) {}

  void see(const BrokerView& view);
  // Nothing can be written: why; empty: writes work.
  void set_write_fault(const std::string& fault) { write_fault_ = fault; }
  // Why the lane must be parked; empty: it may give work.
  std::string reason(const Lane& lane) const;

 private:
  const int max_queue_;
  std::string write_fault_;
  std::set<std::string> served_;  // GPU kinds with a live profiler
  std::set<std::string> full_;    // GPU kinds whose queue is too long
};

}  // namespace fixit

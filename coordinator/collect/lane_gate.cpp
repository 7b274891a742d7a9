#include "coordinator/collect/lane_gate.h"

#include <fmt/format.h>

namespace fixit {

void LaneGate::see(const BrokerView& view) {
  served_.clear();
  for (const ProfilerView& profiler : view.profilers) served_.insert(profiler.capability.gpu);
  std::set<std::string> full;
  for (const auto& [gpu, queued] : view.queued) {
    const bool stays_full = full_.contains(gpu) && queued * 2 > max_queue_;
    if (queued * 4 > max_queue_ * 3 || stays_full) full.insert(gpu);
  }
  full_ = std::move(full);
}

std::string LaneGate::reason(const Lane& lane) const {
  if (!write_fault_.empty()) return write_fault_;
  if (lane.gpu == "none") return {};
  if (!served_.contains(lane.gpu)) return fmt::format("no live profiler serves GPU kind {}", lane.gpu);
  if (full_.contains(lane.gpu)) return fmt::format("the profile queue of GPU kind {} is full", lane.gpu);
  return {};
}

}  // namespace fixit

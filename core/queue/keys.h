// The names of every key in Redis; docs/redis-keys.md is their table. Nothing else spells a key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/queue/job_queue.h"

namespace fixit::keys {

// Of the whole installation.
inline constexpr std::string_view kSchema = "fx:schema";
inline constexpr std::string_view kLanes = "fx:lanes";
inline constexpr std::string_view kSweeps = "fx:sweeps";
inline constexpr std::string_view kStates = "fx:states";
inline constexpr std::string_view kWorkers = "fx:workers";
inline constexpr std::string_view kProfilers = "fx:profilers";
inline constexpr std::string_view kLeader = "fx:{leader}:lock";
inline constexpr std::string_view kEpoch = "fx:{leader}:epoch";
inline std::string sweep(std::string_view name) {
  return "fx:sweep:" + std::string(name);
}

// Of a lane. The braces are Redis Cluster's hash tag: all keys of a lane lie in one slot.
inline std::string lane_key(const Lane& lane, std::string_view suffix) {
  return "fx:{" + lane.name() + "}:" + std::string(suffix);
}
inline std::string job(const Lane& lane, std::string_view id) {
  return lane_key(lane, "job:") + std::string(id);
}
inline std::string progress(const Lane& lane, std::string_view id) {
  return lane_key(lane, "progress:") + std::string(id);
}
inline std::string leased(const Lane& lane) {
  return lane_key(lane, "leased");
}
inline std::string dead(const Lane& lane) {
  return lane_key(lane, "dead");
}
inline std::string events(const Lane& lane) {
  return lane_key(lane, "events");
}
inline std::string bell(const Lane& lane) {
  return lane_key(lane, "bell");
}

// KEYS of every lane script, in the order that scripts/prelude.lua names them. The last three are prefixes of
// keys that end in a job id or a sweep name.
inline std::vector<std::string> of_lane(const Lane& lane) {
  std::vector<std::string> all;
  for (const char* suffix : {"sweeps", "active", "flags", "counts", "state", "delayed", "leased", "dead",
                             "unburied", "events", "bell", "job:", "progress:", "ready:"})
    all.push_back(lane_key(lane, suffix));
  return all;
}

}  // namespace fixit::keys

// Frozen sweeps as trajectories use them: fetched once, shared by all of a sweep's jobs.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/queue/registry.h"
#include "core/store/store.h"

namespace fixit {

struct LoadedSweep {
  using Recordings = std::map<std::string, RecordedReply>;
  FrozenSweep frozen;
  std::mutex mutex;                                             // guards recordings
  std::map<int, std::shared_ptr<const Recordings>> recordings;  // by index of the model
};

// Thread-safe; calls may block on Redis and store.
class SweepCache {
 public:
  SweepCache(Registry& registry, BlobStore& store) : registry_(registry), store_(store) {}

  Result<std::shared_ptr<LoadedSweep>> get(const std::string& name);
  // Of a replay model; null for a live provider's.
  Result<std::shared_ptr<const LoadedSweep::Recordings>> recordings(LoadedSweep& sweep, int model);

 private:
  static constexpr size_t kKept = 32;  // sweeps; those in use live on with their trajectories

  Registry& registry_;
  BlobStore& store_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<LoadedSweep>>> by_use_;  // the latest first
};

}  // namespace fixit

#include "worker/engine/sweep_cache.h"

#include <algorithm>

namespace fixit {

Result<std::shared_ptr<LoadedSweep>> SweepCache::get(const std::string& name) {
  // Held while Redis is asked, so that a batch of one sweep's jobs asks once.
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(by_use_.begin(), by_use_.end(), [&](const auto& e) { return e.first == name; });
  if (known != by_use_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, known);
    return known->second;
  }
  FIXIT_ASSIGN_OR_RETURN(FrozenSweep frozen, registry_.get_sweep(name));
  auto loaded = std::make_shared<LoadedSweep>();
  loaded->frozen = std::move(frozen);
  by_use_.emplace_front(name, loaded);
  if (by_use_.size() > kKept) by_use_.pop_back();
  return loaded;
}

Result<std::shared_ptr<const LoadedSweep::Recordings>> SweepCache::recordings(LoadedSweep& sweep, int model) {
  const FrozenModel& frozen = sweep.frozen.models.at(static_cast<size_t>(model));
  if (frozen.replies.empty()) return std::shared_ptr<const LoadedSweep::Recordings>();
  const std::lock_guard lock(sweep.mutex);
  auto& kept = sweep.recordings[model];
  if (!kept) {
    FIXIT_ASSIGN_OR_RETURN(const std::string bytes, store_.get(frozen.replies));
    FIXIT_ASSIGN_OR_RETURN(LoadedSweep::Recordings replies, decode<LoadedSweep::Recordings>(bytes));
    kept = std::make_shared<const LoadedSweep::Recordings>(std::move(replies));
  }
  return kept;
}

}  // namespace fixit

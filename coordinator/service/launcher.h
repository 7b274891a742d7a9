// Takes a frozen sweep in: journal first, then the queue.
#pragma once

#include <mutex>

#include "coordinator/collect/ledger.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"
#include "core/store/store.h"
#include "core/wire/message.h"

namespace fixit {

// Thread-safe. Launches run one after another.
class Launcher {
 public:
  Launcher(Ledger& ledger, JobQueue& queue, Registry& registry, BlobStore& store, const Clock& clock)
      : ledger_(ledger), queue_(queue), registry_(registry), store_(store), clock_(clock) {}

  // Idempotent: what is queued, running or finished (by the journal) is left alone. kConflict if another
  // sweep of that name was launched before; kInvalid if the sweep is empty or names blobs that the store
  // lacks. On ok the sweep is in the journal and all its unfinished jobs are in the queue.
  Result<Launched> launch(const LaunchRequest& request);

 private:
  Status check(const FrozenSweep& sweep);
  // Registers the sweep in Redis and in the journal, unless they have it.
  Result<std::shared_ptr<const FrozenSweep>> record(FrozenSweep sweep);

  Ledger& ledger_;
  JobQueue& queue_;
  Registry& registry_;
  BlobStore& store_;
  const Clock& clock_;
  std::mutex mutex_;
};

}  // namespace fixit

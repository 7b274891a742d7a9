// Drives every sweep from its rollouts to its rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/chain/sweep_records.h"
#include "coordinator/collect/ledger.h"
#include "coordinator/launch/launch.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"
#include "core/store/store.h"

namespace fixit {

// Every decision is a function of the journal and is journaled before anything follows from it, so that a
// coordinator killed at any point goes on where the last one was: failures are mined once all rollouts have
// ended, the repair jobs decided, journaled and enqueued; likewise rationales and rows. Driven by one thread.
class Chain {
 public:
  struct Options {
    std::filesystem::path journal;
    std::filesystem::path datasets;  // rows go to datasets/SWEEP/rows.jsonl
    int64_t stall_ms = 5000;         // without progress and without work in the queue: Redis lost jobs
  };
  Chain(Ledger& ledger, JobQueue& queue, Registry& registry, BlobStore& store, const Clock& clock,
        Options options);

  // Takes each unfinished sweep as far as it can go now.
  void tick();

 private:
  struct Watched {                  // what this process did for a sweep
    std::set<SweepPhase> enqueued;  // phases whose jobs are known to be in the queue
    int64_t version = -1;           // of the ledger when progress was last seen
    int64_t since_ms = 0;           // steady clock
    std::string stalled;            // why it is stuck, once that is known
  };

  Status advance(const std::string& sweep, Watched& watched);
  Status decide(const std::string& sweep, SweepPhase phase);
  Status enqueue_phase(const std::string& sweep, SweepPhase phase, int64_t* added);
  Status build(const std::string& sweep);
  Status revive(const std::string& sweep, Watched& watched);
  // The jobs of a decided phase that have not ended.
  Result<std::vector<PlannedJob>> open_jobs(const std::string& sweep, SweepPhase phase);

  Ledger& ledger_;
  JobQueue& queue_;
  Registry& registry_;
  BlobStore& store_;
  const Clock& clock_;
  const Options options_;
  std::map<std::string, Watched> watched_;
  std::set<std::string> failing_;  // sweeps whose fault is in the log already
};

// Decides a phase's jobs from records: "repair" from failures, "rationale" from verified repairs.
Result<std::vector<PlannedJob>> jobs_of_phase(const SweepRecords& records, const std::string& phase);

// Enqueues jobs lane by lane in chunks. Idempotent.
Result<JobQueue::Enqueued> enqueue_jobs(JobQueue& queue, const FrozenSweep& sweep,
                                        const std::vector<PlannedJob>& jobs);

}  // namespace fixit

// The job queue on Redis. This folder alone knows keys and scripts (keys.h, scripts/*.lua).
//
// One record per job is the truth for its state, attempt token and lease. Ready, delayed and leased sets and
// counters are indexes. All keys of a lane share one hash tag, every transition is one script over a batch,
// time is Redis's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/queue/redis.h"
#include "core/record/event.h"

namespace fixit {

// (model or "none", GPU kind). A rationale job's GPU kind is "none".
struct Lane {
  std::string model;
  std::string gpu;
  std::string name() const { return model + "@" + gpu; }
  static Result<Lane> parse(std::string_view name);
  auto operator<=>(const Lane&) const = default;
};

struct NewJob {
  std::string id;       // job_id()
  std::string payload;  // msgpack of JobPayload
};

struct Lease {
  Lane lane;
  std::string job;
  std::string token;  // of this attempt alone, made of 128 random bits
};

struct ClaimedJob {
  Lease lease;
  std::string sweep;
  std::string payload;
  std::string progress;  // msgpack of JobProgress; empty at the first attempt
  int crashes = 0;       // leases that ended without a word from their worker
  int infra_failures = 0;
  int provider_failures = 0;
};

enum class LeaseState { kKept, kLost, kCancelled };

// Which retry budget a failure is charged to.
enum class FailureKind { kInfra, kProvider, kOutOfMemory, kCrash };

template <>
struct EnumNames<FailureKind> {
  static constexpr std::pair<FailureKind, std::string_view> values[] = {
      {FailureKind::kInfra, "infra"},
      {FailureKind::kProvider, "provider"},
      {FailureKind::kOutOfMemory, "out_of_memory"},
      {FailureKind::kCrash, "crash"},
  };
};

struct RetryPolicy {
  int max_infra = 20;
  int max_provider = 20;
  int max_out_of_memory = 3;
  int max_crash = 3;
  int64_t backoff_ms = 500;  // first delay; doubles, full jitter
  int64_t max_backoff_ms = 60000;
};

struct LaneSweepCounts {  // kept, not scanned
  std::string sweep;
  Lane lane;
  int64_t ready = 0;
  int64_t delayed = 0;
  int64_t leased = 0;
  int64_t done = 0;
  int64_t dead = 0;
  int64_t oldest_ready_ms = 0;  // age since enqueue of the sweep's ready job that is next, 0 if none
  bool paused = false;
  bool cancelled = false;
  bool parked = false;  // the whole lane
  std::string parked_reason;
};

// Where a job is. A done job's payload and progress are gone: its events have them.
enum class JobState { kReady, kDelayed, kLeased, kDone, kDead };

template <>
struct EnumNames<JobState> {
  static constexpr std::pair<JobState, std::string_view> values[] = {
      {JobState::kReady, "ready"}, {JobState::kDelayed, "delayed"}, {JobState::kLeased, "leased"},
      {JobState::kDone, "done"},   {JobState::kDead, "dead"},
  };
};

// A job's record, for people and for whoever writes the JobEndRecord of a job that died in reclaim().
struct JobView {
  std::string job;
  JobState state = JobState::kReady;
  std::string sweep;
  std::string payload;
  std::string progress;
  int crashes = 0;
  int infra_failures = 0;
  int provider_failures = 0;
  int out_of_memory_failures = 0;
  std::string worker;    // who holds or last held it
  int64_t until_ms = 0;  // Redis's clock: end of lease or delay, time of death; else 0 or past
  std::string error;     // of a dead job
};

// One step of a leased job, for batches.
struct JobStep {
  Lease lease;
  std::string progress;  // not used by finish_all
  std::vector<JobEvent> events;
};

struct StreamedEvent {
  Lane lane;
  std::string position;  // stream id; order within a lane
  std::string job;
  JobEvent event;
};

// Thread-safe if the Redis it was made with is. Every call may return kUnavailable; each may then be repeated
// as it was: enqueue, commit and finish have no second effect, a claim whose answer was lost runs out.
class JobQueue {
 public:
  explicit JobQueue(Redis& redis, RetryPolicy retry = {});

  struct Enqueued {
    int64_t added = 0;
    int64_t existing = 0;
  };
  // Idempotent: a job whose record exists is left alone. `priority` 1..9 weighs the sweep's share of the
  // lane.
  Result<Enqueued> enqueue(const Lane& lane, const std::string& sweep, int priority,
                           std::span<const NewJob> jobs);

  // Leases up to max jobs, lane by lane in the order given, sweeps of a lane by weighted fair share (so that
  // none starves). Paused and cancelled sweeps and parked lanes give nothing.
  Result<std::vector<ClaimedJob>> claim(std::span<const Lane> lanes, int max, const std::string& worker,
                                        std::chrono::milliseconds lease);
  // Blocks up to timeout until one of the lanes may have work; ok either way, so claim afterwards in any
  // case. `blocking` is a connection of the caller's own.
  Status wait_for_work(Redis& blocking, std::span<const Lane> lanes, std::chrono::milliseconds timeout);

  // Renews leases; the answer has one state per lease, in order.
  Result<std::vector<LeaseState>> heartbeat(std::span<const Lease> leases, std::chrono::milliseconds lease);

  // Stores the job's progress and appends events, if the token still owns the job: else kStale and nothing
  // changes. Also renews the lease. Repeating the very last commit of the attempt appends nothing.
  Status commit(const Lease& lease, std::string_view progress, std::span<const JobEvent> events,
                std::chrono::milliseconds lease_term);
  // As commit, and the job is done: its record goes once the journal has its events (forget()).
  Status finish(const Lease& lease, std::span<const JobEvent> events);
  // Many at once, each on its own; the answer says per step, in order, whether its token owned the job.
  Result<std::vector<bool>> commit_all(std::span<const JobStep> steps, std::chrono::milliseconds lease_term);
  Result<std::vector<bool>> finish_all(std::span<const JobStep> steps);

  enum class FailResult { kRetry, kDead };
  // Gives the job back under the named budget, after backoff or retry_after; beyond the budget it is dead
  // (quarantined with `error`, and `dead_event` is appended). Progress is kept.
  Result<FailResult> fail(const Lease& lease, FailureKind kind, std::string_view error,
                          std::optional<std::chrono::milliseconds> retry_after, const JobEvent& dead_event);
  // Gives jobs back at once, uncharged: the worker leaves on purpose.
  Status release(std::span<const Lease> leases);

  struct Reclaimed {
    int64_t requeued = 0;
    // Jobs that crashed too often and have no event yet, named by every call until bury().
    std::vector<std::string> dead;
  };
  // Takes back expired leases (charged as crash) and moves due delayed jobs to ready, up to max of each.
  Result<Reclaimed> reclaim(const Lane& lane, int max);
  // Grants every lease of the lane one whole term from now: after an outage.
  Status extend_all(const Lane& lane, std::chrono::milliseconds lease);
  // Takes back every lease that `worker` holds, at once: its supervisor saw it die. Charged as crash.
  Result<Reclaimed> reclaim_worker(const Lane& lane, const std::string& worker);
  // Appends the event of a job that died in reclaim, once. kConflict if the job is not dead.
  Status bury(const Lane& lane, const std::string& job, const JobEvent& dead_event);

  // Event log of a lane, after `position` ("0" for the start).
  Result<std::vector<StreamedEvent>> read_events(const Lane& lane, const std::string& position, int max);
  // Drops events up to and including `position`, and the records of those `finished` jobs that are done: the
  // journal has them. Dead jobs stay.
  Status forget(const Lane& lane, const std::string& position, std::span<const std::string> finished);

  // Both are atomic with claiming. Heartbeats of a cancelled sweep's jobs answer kCancelled.
  Status set_paused(const Lane& lane, const std::string& sweep, bool paused);
  Status set_cancelled(const Lane& lane, const std::string& sweep, bool cancelled);
  // Parked lanes give nothing to claims: no profiler lives, or its queue is full.
  Status set_parked(const Lane& lane, bool parked, std::string_view reason);

  Result<std::vector<Lane>> lanes();
  Result<std::vector<LaneSweepCounts>> counts();  // O(lanes x sweeps)
  // Those of the jobs that have a record, in order.
  Result<std::vector<JobView>> inspect(const Lane& lane, std::span<const std::string> jobs);
  Result<std::vector<JobView>> dead_jobs(const Lane& lane, int max);  // newest first

 private:
  Redis& redis_;
  RetryPolicy retry_;
};

}  // namespace fixit

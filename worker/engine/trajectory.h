// One leased job as the engine holds it, and what it may wait for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "core/queue/job_queue.h"
#include "core/record/event.h"
#include "core/wire/message.h"
#include "worker/compile/compiler.h"
#include "worker/engine/sweep_cache.h"
#include "worker/llm/llm_client.h"

namespace fixit {

// Belongs to one thread at a time: a pool thread while a step runs, else the engine's.
struct Trajectory {
  ClaimedJob claimed;
  JobPayload payload;
  JobProgress progress;  // equal to what is committed, but for current.times and an evaluate job's source
  std::shared_ptr<LoadedSweep> sweep;
  JobAxes axes;
  BlobHash system;  // of the prompt; empty until it has been made
  BlobHash task;
  int commits = 0;  // so far, of this attempt

  const FrozenSweep& frozen() const { return sweep->frozen; }
  const FrozenProblem& problem() const { return frozen().problems[static_cast<size_t>(payload.problem)]; }
  const GpuConfig& gpu() const { return frozen().gpus[static_cast<size_t>(payload.gpu)]; }
  const FrozenPack& pack() const;  // an empty one where the job has none
  int turn() const { return static_cast<int>(progress.turns.size()); }
};

// What a step ends with: the outside work that the trajectory waits for next, or its end here.
struct CallModel {
  ChatRequest request;
  std::string key;  // reply_key()
};
struct StartCompile {
  CompileJob job;
};
struct StartProfile {
  ProfileRequest request;
};
struct Ended {};
using Action = std::variant<CallModel, StartCompile, StartProfile, Ended>;

}  // namespace fixit

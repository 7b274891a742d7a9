// What a job is made of: the payload fixed at enqueue, and the progress committed step by step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/codec.h"
#include "core/base/hash.h"
#include "core/record/turn_status.h"

namespace fixit {

enum class JobKind { kRollout, kRepair, kRationale, kEvaluate };

template <>
struct EnumNames<JobKind> {
  static constexpr std::pair<JobKind, std::string_view> values[] = {
      {JobKind::kRollout, "rollout"},
      {JobKind::kRepair, "repair"},
      {JobKind::kRationale, "rationale"},
      {JobKind::kEvaluate, "evaluate"},
  };
};

// Where a repair, rationale or evaluate job comes from.
struct Origin {
  std::string failed_job;    // the rollout job whose turn failed
  int failed_turn = 0;       // 0-based
  BlobHash failed_source;    // the failed kernel; for `evaluate` the kernel to evaluate
  BlobHash failed_feedback;  // what the model was told of it
  std::string repair_job;    // rationale only
  int repair_turn = 0;       // rationale only
  BlobHash repaired_source;  // rationale only
  FIXIT_FIELDS(failed_job, failed_turn, failed_source, failed_feedback, repair_job, repair_turn,
               repaired_source);
};

// Indices point into the lists of the sweep's FrozenSweep. An index that a kind does not use is -1.
struct JobPayload {
  JobKind kind = JobKind::kRollout;
  int problem = -1;
  int model = -1;
  int gpu = -1;
  int pack = -1;
  int sample = 0;
  std::optional<Origin> origin;
  FIXIT_FIELDS(kind, problem, model, gpu, pack, sample, origin);
};

// Deterministic: 24 hexadecimal digits of a hash of what the job is, so that enqueueing twice is enqueueing
// once. `sweep` is the sweep's name; the names, not the indices, of the axes enter.
std::string job_id(std::string_view sweep, JobKind kind, std::string_view problem, std::string_view model,
                   std::string_view gpu, std::string_view pack, int sample,
                   const std::optional<Origin>& origin);

struct TokenUsage {
  int64_t prompt = 0;
  int64_t cached = 0;  // of prompt
  int64_t completion = 0;
  int64_t reasoning = 0;  // of completion
  FIXIT_FIELDS(prompt, cached, completion, reasoning);
};

// One finished exchange of a trajectory, as the next prompt needs it.
struct PastTurn {
  BlobHash reply;
  BlobHash feedback;
  TurnStatus status = TurnStatus::kPending;
  std::optional<double> speedup;
  BlobHash source;  // empty for NO_CODE and TRUNCATED
  FIXIT_FIELDS(reply, feedback, status, speedup, source);
};

enum class Stage { kGenerate, kCompile, kProfile };

template <>
struct EnumNames<Stage> {
  static constexpr std::pair<Stage, std::string_view> values[] = {
      {Stage::kGenerate, "generate"}, {Stage::kCompile, "compile"}, {Stage::kProfile, "profile"}};
};

struct CompileRecord {
  TurnStatus status =
      TurnStatus::kPending;  // CORRECT when an object was made; else COMPILE_ERROR, BANNED, INFRA
  std::string key;           // hash of source, flags, architecture, toolchain, headers
  BlobHash artifact;         // the shared object
  BlobHash log;              // the compiler's whole output
  std::string check;         // for BANNED: which rule
  std::string evidence;
  std::string toolchain;  // "g++ 12.2.0"
  double seconds = 0;
  bool cached = false;
  FIXIT_FIELDS(status, key, artifact, log, check, evidence, toolchain, seconds, cached);
};

// The part of a turn that is finished, committed before the next stage begins.
struct CurrentTurn {
  Stage next = Stage::kGenerate;
  BlobHash reply;
  std::string finish_reason;  // "stop", "length", ...
  TokenUsage usage;
  double cost_usd = 0;
  BlobHash source;
  CompileRecord compile;
  std::map<std::string, int64_t> times;  // "generate_begin", "generate_end", ... -> unix milliseconds
  FIXIT_FIELDS(next, reply, finish_reason, usage, cost_usd, source, compile, times);
};

struct JobProgress {
  std::vector<PastTurn> turns;
  CurrentTurn current;
  double best_speedup = 0;  // over CORRECT turns
  double spent_usd = 0;
  int64_t spent_tokens = 0;
  FIXIT_FIELDS(turns, current, best_speedup, spent_usd, spent_tokens);
};

FIXIT_EXTERN_CODEC(Origin)
FIXIT_EXTERN_CODEC(JobPayload)
FIXIT_EXTERN_CODEC(JobProgress)
FIXIT_EXTERN_CODEC(CompileRecord)

}  // namespace fixit

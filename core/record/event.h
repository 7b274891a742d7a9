// What jobs leave behind: the records that go through Redis to the journal, and from there to tables and
// datasets. One typed record per finished turn, rationale and job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/record/job.h"
#include "core/record/verdict.h"

namespace fixit {

// The axes of a job by name, as every record carries them.
struct JobAxes {
  std::string sweep;
  std::string job;
  JobKind kind = JobKind::kRollout;
  std::string problem;
  std::string model;  // empty for evaluate
  std::string gpu;
  std::string pack;
  std::string pack_hash;
  int sample = 0;
  FIXIT_FIELDS(sweep, job, kind, problem, model, gpu, pack, pack_hash, sample);
};

struct TurnRecord {
  int version = 1;
  JobAxes axes;
  std::optional<Origin> origin;
  int turn = 0;  // 0-based; counts consumed turns
  TurnStatus status = TurnStatus::kPending;
  BlobHash system;  // first message of the prompt
  BlobHash task;    // second message
  BlobHash reply;
  std::string finish_reason;
  TokenUsage usage;
  double cost_usd = 0;
  BlobHash source;
  std::optional<CompileRecord> compile;
  std::optional<Verdict> verdict;
  BlobHash feedback;
  std::map<std::string, int64_t> times;  // stage name + "_begin" / "_end" -> unix milliseconds
  std::string worker;
  FIXIT_FIELDS(version, axes, origin, turn, status, system, task, reply, finish_reason, usage, cost_usd,
               source, compile, verdict, feedback, times, worker);
};

struct RationaleRecord {
  int version = 1;
  JobAxes axes;
  Origin origin;
  int attempt = 0;  // 0 first writing, 1 rewriting
  bool accepted = false;
  std::string rule;  // the filter that refused it; empty if accepted
  BlobHash request;  // the user message
  BlobHash reply;
  BlobHash text;  // the rationale proper
  TokenUsage usage;
  double cost_usd = 0;
  std::map<std::string, int64_t> times;
  std::string worker;
  FIXIT_FIELDS(version, axes, origin, attempt, accepted, rule, request, reply, text, usage, cost_usd, times,
               worker);
};

// Why a job ended.
enum class JobOutcome {
  kTargetReached,
  kTurnLimit,
  kContextExhausted,
  kBudget,
  kCancelled,
  kLlmFatal,
  kDone,  // evaluate and rationale jobs that ran to their end
  kDead,  // quarantined: see `error`
};

template <>
struct EnumNames<JobOutcome> {
  static constexpr std::pair<JobOutcome, std::string_view> values[] = {
      {JobOutcome::kTargetReached, "target_reached"},
      {JobOutcome::kTurnLimit, "turn_limit"},
      {JobOutcome::kContextExhausted, "context_exhausted"},
      {JobOutcome::kBudget, "budget"},
      {JobOutcome::kCancelled, "cancelled"},
      {JobOutcome::kLlmFatal, "llm_fatal"},
      {JobOutcome::kDone, "done"},
      {JobOutcome::kDead, "dead"},
  };
};

struct JobEndRecord {
  int version = 1;
  JobAxes axes;
  std::optional<Origin> origin;
  JobOutcome outcome = JobOutcome::kDone;
  int turns = 0;
  std::optional<double> best_speedup;
  std::string error;  // for dead and llm_fatal: what failed, where
  int64_t ended_ms = 0;
  FIXIT_FIELDS(version, axes, origin, outcome, turns, best_speedup, error, ended_ms);
};

// A record on its way through a lane's event log: `kind` says which struct `data` encodes.
enum class EventKind { kTurn, kRationale, kJobEnd };

template <>
struct EnumNames<EventKind> {
  static constexpr std::pair<EventKind, std::string_view> values[] = {
      {EventKind::kTurn, "turn"}, {EventKind::kRationale, "rationale"}, {EventKind::kJobEnd, "job_end"}};
};

struct JobEvent {
  EventKind kind = EventKind::kTurn;
  std::string data;  // msgpack of TurnRecord, RationaleRecord or JobEndRecord
};

FIXIT_EXTERN_CODEC(TurnRecord)
FIXIT_EXTERN_CODEC(RationaleRecord)
FIXIT_EXTERN_CODEC(JobEndRecord)

}  // namespace fixit

#include "worker/engine/records.h"

namespace fixit {
namespace {

template <typename List>
Status check_index(const char* axis, int index, const List& list, bool needed) {
  if (index < 0 && !needed) return {};
  if (index >= 0 && static_cast<size_t>(index) < list.size()) return {};
  return Status(ErrorCode::kInvalid, std::string("payload: index ") + std::to_string(index) + " of axis " +
                                         axis + " is outside the sweep's " + std::to_string(list.size()));
}

}  // namespace

const FrozenPack& Trajectory::pack() const {
  static const FrozenPack kNone;
  return payload.pack < 0 ? kNone : frozen().packs[static_cast<size_t>(payload.pack)];
}

Status resolve_axes(Trajectory& t) {
  const FrozenSweep& sweep = t.frozen();
  const JobPayload& payload = t.payload;
  const bool with_model = payload.kind != JobKind::kEvaluate;
  FIXIT_RETURN_IF_ERROR(check_index("problem", payload.problem, sweep.problems, true));
  FIXIT_RETURN_IF_ERROR(check_index("model", payload.model, sweep.models, with_model));
  FIXIT_RETURN_IF_ERROR(check_index("gpu", payload.gpu, sweep.gpus, true));
  FIXIT_RETURN_IF_ERROR(check_index("pack", payload.pack, sweep.packs, false));
  const bool from_failure = payload.kind == JobKind::kRepair || payload.kind == JobKind::kRationale;
  if (from_failure && (!payload.origin || !sweep.recipe))
    return Status(ErrorCode::kInvalid, "payload: a " + std::string(name_of(payload.kind)) +
                                           " job needs an origin and its sweep a recipe");
  t.axes.sweep = sweep.sweep.name;
  t.axes.job = t.claimed.lease.job;
  t.axes.kind = payload.kind;
  t.axes.problem = t.problem().name;
  t.axes.model = with_model ? sweep.models[static_cast<size_t>(payload.model)].config.name : "";
  t.axes.gpu = t.gpu().name;
  t.axes.pack = t.pack().name;
  t.axes.pack_hash = t.pack().hash;
  t.axes.sample = payload.sample;
  return {};
}

JobEvent turn_event(const TurnRecord& record) {
  return {EventKind::kTurn, encode(record)};
}

JobEvent rationale_event(const RationaleRecord& record) {
  return {EventKind::kRationale, encode(record)};
}

JobEvent end_event(const Trajectory& t, const JobProgress& progress, JobOutcome outcome,
                   const std::string& error, int64_t now_ms) {
  JobEndRecord record;
  record.axes = t.axes;
  if (record.axes.job.empty()) {  // the sweep could not be read
    record.axes.job = t.claimed.lease.job;
    record.axes.sweep = t.claimed.sweep;
    record.axes.kind = t.payload.kind;
  }
  record.origin = t.payload.origin;
  record.outcome = outcome;
  record.turns = static_cast<int>(progress.turns.size());
  for (const PastTurn& turn : progress.turns)
    if (turn.status == TurnStatus::kCorrect && turn.speedup) record.best_speedup = progress.best_speedup;
  record.error = error;
  record.ended_ms = now_ms;
  return {EventKind::kJobEnd, encode(record)};
}

}  // namespace fixit

#include "coordinator/chain/sweep_records.h"

namespace fixit {

Status SweepRecords::add(const JournalRecord& record, const std::string& name) {
  if (record.sweep != name) return {};
  switch (record.kind) {
    case JournalKind::kSweep: {
      if (has_sweep_) return {};
      FIXIT_ASSIGN_OR_RETURN(sweep, decode<FrozenSweep>(record.data));
      has_sweep_ = true;
      return {};
    }
    case JournalKind::kTurn: {
      FIXIT_ASSIGN_OR_RETURN(TurnRecord turn, decode<TurnRecord>(record.data));
      if (!consumes_turn(turn.status)) return {};  // a turn that counts may follow under the same number
      if (turn_index_.emplace(std::pair(turn.axes.job, turn.turn), turns.size()).second)
        turns.push_back(std::move(turn));
      return {};
    }
    case JournalKind::kRationale: {
      FIXIT_ASSIGN_OR_RETURN(RationaleRecord rationale, decode<RationaleRecord>(record.data));
      if (rationale_index_.emplace(rationale.axes.job, rationale.attempt).second)
        rationales.push_back(std::move(rationale));
      return {};
    }
    case JournalKind::kPlan: {
      FIXIT_ASSIGN_OR_RETURN(PlanRecord plan, decode<PlanRecord>(record.data));
      plans.emplace(plan.phase, plan);
      return {};
    }
    case JournalKind::kJobEnd:
    case JournalKind::kDataset:
      return {};
  }
  return {};
}

const TurnRecord* SweepRecords::turn(const std::string& job, int number) const {
  const auto found = turn_index_.find({job, number});
  return found == turn_index_.end() ? nullptr : &turns[found->second];
}

namespace {

// A rollout's CORRECT turns and a repair's failed ones are most of a journal and no part of any row.
bool useful_to_chain(const JournalRecord& record) {
  if (record.kind != JournalKind::kTurn) return true;
  const auto turn = decode<TurnRecord>(record.data);
  if (!turn.ok()) return true;  // let add() report it
  if (turn->axes.kind == JobKind::kRollout) return is_failure(turn->status);
  return turn->axes.kind == JobKind::kRepair && turn->status == TurnStatus::kCorrect;
}

}  // namespace

Result<SweepRecords> read_sweep_records(const std::filesystem::path& journal, const std::string& name) {
  SweepRecords records;
  Status fault;
  bool known = false;
  FIXIT_RETURN_IF_ERROR(read_journal(journal, [&](const JournalRecord& record) {
    if (record.sweep != name) return true;
    known = known || record.kind == JournalKind::kSweep;
    if (useful_to_chain(record)) fault = records.add(record, name);
    return fault.ok();
  }));
  FIXIT_RETURN_IF_ERROR(fault.with_context("journal of sweep " + name));
  if (!known) return Status(ErrorCode::kNotFound, "the journal knows no sweep named " + name);
  return records;
}

}  // namespace fixit

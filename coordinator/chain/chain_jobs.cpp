#include "coordinator/chain/chain_jobs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fixit {
namespace {

template <typename Items, typename NameOf>
Result<int> index_of(const Items& items, const std::string& name, std::string_view what,
                     NameOf name_of_item) {
  for (size_t i = 0; i < items.size(); ++i)
    if (name_of_item(items[i]) == name) return static_cast<int>(i);
  return Status(ErrorCode::kInvalid, "the frozen sweep has no " + std::string(what) + " named " + name);
}

Result<JobPayload> payload_of(const FrozenSweep& sweep, JobKind kind, const JobAxes& axes,
                              const std::string& teacher, Origin origin) {
  JobPayload payload;
  payload.kind = kind;
  FIXIT_ASSIGN_OR_RETURN(payload.problem, index_of(sweep.problems, axes.problem, "problem",
                                                   [](const FrozenProblem& p) { return p.name; }));
  FIXIT_ASSIGN_OR_RETURN(payload.model, index_of(sweep.models, teacher, "model",
                                                 [](const FrozenModel& m) { return m.config.name; }));
  FIXIT_ASSIGN_OR_RETURN(payload.gpu,
                         index_of(sweep.gpus, axes.gpu, "GPU", [](const GpuConfig& g) { return g.name; }));
  FIXIT_ASSIGN_OR_RETURN(
      payload.pack, index_of(sweep.packs, axes.pack, "pack", [](const FrozenPack& p) { return p.name; }));
  payload.sample = axes.sample;
  payload.origin = std::move(origin);
  return payload;
}

Origin origin_of(const TurnRecord& failure) {
  Origin origin;
  origin.failed_job = failure.axes.job;
  origin.failed_turn = failure.turn;
  origin.failed_source = failure.source;
  origin.failed_feedback = failure.feedback;
  return origin;
}

Origin origin_of(const RepairedPair& pair) {
  Origin origin = origin_of(*pair.failure);
  origin.repair_job = pair.repair->axes.job;
  origin.repair_turn = pair.repair->turn;
  origin.repaired_source = pair.repair->source;
  return origin;
}

std::string chain_job_id(const FrozenSweep& sweep, JobKind kind, const JobAxes& axes,
                         const std::string& teacher, const Origin& origin) {
  return job_id(sweep.sweep.name, kind, axes.problem, teacher, axes.gpu, axes.pack, axes.sample, origin);
}

bool is_verified(const TurnRecord& turn, const RepairStage& stage) {
  if (turn.axes.kind != JobKind::kRepair || turn.status != TurnStatus::kCorrect || !turn.origin ||
      !turn.verdict)
    return false;
  const Verdict& verdict = *turn.verdict;
  if (verdict.isolation != "process" && verdict.isolation != "replay") return false;
  if (!verdict.speedup || *verdict.speedup < stage.min_speedup || turn.source.empty()) return false;
  return !stage.require_instructions || verdict.instructions.verdict == InstructionVerdict::kYes;
}

// True if `a` is to be kept rather than `b`, both turns of one repair job.
bool preferred(const TurnRecord& a, const TurnRecord& b, const std::string& keep) {
  if (keep == "latest") return a.turn > b.turn;
  return std::pair(*a.verdict->speedup, -a.turn) > std::pair(*b.verdict->speedup, -b.turn);
}

auto order_key(const RepairedPair& pair) {
  return std::tie(pair.failure->axes.problem, pair.failure->turn, pair.failure->axes.job,
                  pair.repair->axes.job, pair.repair->turn);
}

}  // namespace

Result<std::vector<PlannedJob>> repair_jobs(const SweepRecords& records,
                                            const std::vector<const TurnRecord*>& failures) {
  const std::string& teacher = records.sweep.recipe->repair.model;
  std::vector<PlannedJob> jobs;
  for (const TurnRecord* failure : failures) {
    const Origin origin = origin_of(*failure);
    FIXIT_ASSIGN_OR_RETURN(JobPayload payload,
                           payload_of(records.sweep, JobKind::kRepair, failure->axes, teacher, origin));
    const std::string id = chain_job_id(records.sweep, JobKind::kRepair, failure->axes, teacher, origin);
    jobs.push_back({Lane{teacher, failure->axes.gpu}, NewJob{id, encode(payload)}});
  }
  return jobs;
}

std::vector<RepairedPair> verified_repairs(const SweepRecords& records, const RecipeConfig& recipe) {
  const auto plan = records.plans.find("repair");
  if (plan == records.plans.end()) return {};
  const std::set<std::string> planned(plan->second.jobs.begin(), plan->second.jobs.end());
  std::map<std::string, std::vector<const TurnRecord*>> by_job;
  for (const TurnRecord& turn : records.turns) {
    if (!planned.contains(turn.axes.job) || !is_verified(turn, recipe.repair)) continue;
    auto& kept = by_job[turn.axes.job];
    if (recipe.repair.keep == "all" || kept.empty())
      kept.push_back(&turn);
    else if (preferred(turn, *kept.front(), recipe.repair.keep))
      kept.front() = &turn;
  }
  std::vector<RepairedPair> pairs;
  for (const auto& [job, kept] : by_job)
    for (const TurnRecord* repair : kept)
      if (const TurnRecord* failure = records.turn(repair->origin->failed_job, repair->origin->failed_turn))
        pairs.push_back({failure, repair});
  std::sort(pairs.begin(), pairs.end(),
            [](const RepairedPair& a, const RepairedPair& b) { return order_key(a) < order_key(b); });
  return pairs;
}

Result<std::vector<PlannedJob>> rationale_jobs(const SweepRecords& records,
                                               const std::vector<RepairedPair>& pairs) {
  const std::string& teacher = records.sweep.recipe->rationale.model;
  std::vector<PlannedJob> jobs;
  for (const RepairedPair& pair : pairs) {
    FIXIT_ASSIGN_OR_RETURN(JobPayload payload, payload_of(records.sweep, JobKind::kRationale,
                                                          pair.failure->axes, teacher, origin_of(pair)));
    jobs.push_back({Lane{teacher, "none"}, NewJob{rationale_job_id(records, pair), encode(payload)}});
  }
  return jobs;
}

std::string rationale_job_id(const SweepRecords& records, const RepairedPair& pair) {
  return chain_job_id(records.sweep, JobKind::kRationale, pair.failure->axes,
                      records.sweep.recipe->rationale.model, origin_of(pair));
}

}  // namespace fixit

#include "coordinator/report/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fixit {
namespace {

bool is_trajectory(JobKind kind) {
  return kind == JobKind::kRollout || kind == JobKind::kEvaluate;
}

class Tally {
 public:
  explicit Tally(const std::string& sweep) { outcome_.sweep = sweep; }

  Status add(const JournalRecord& record) {
    switch (record.kind) {
      case JournalKind::kSweep:
        known_ = true;
        return {};
      case JournalKind::kTurn: {
        FIXIT_ASSIGN_OR_RETURN(const TurnRecord turn, decode<TurnRecord>(record.data));
        add_turn(turn);
        return {};
      }
      case JournalKind::kRationale: {
        FIXIT_ASSIGN_OR_RETURN(const RationaleRecord rationale, decode<RationaleRecord>(record.data));
        spend(rationale.usage, rationale.cost_usd);
        return {};
      }
      case JournalKind::kJobEnd: {
        FIXIT_ASSIGN_OR_RETURN(const JobEndRecord end, decode<JobEndRecord>(record.data));
        add_end(end);
        return {};
      }
      case JournalKind::kDataset: {
        FIXIT_ASSIGN_OR_RETURN(outcome_.dataset, decode<DatasetRecord>(record.data));
        return {};
      }
      case JournalKind::kPlan:
        return {};
    }
    return {};
  }

  Result<SweepOutcome> finish() {
    if (!known_)
      return Status(ErrorCode::kNotFound, "the journal knows no sweep named `" + outcome_.sweep + "`");
    for (auto& [name, problem] : problems_) outcome_.problems.push_back(std::move(problem));
    return std::move(outcome_);
  }

 private:
  void spend(const TokenUsage& usage, double usd) {
    outcome_.tokens += usage.prompt + usage.completion;
    outcome_.usd += usd;
  }

  ProblemOutcome& problem(const std::string& name) {
    ProblemOutcome& entry = problems_[name];
    entry.problem = name;
    return entry;
  }

  void add_turn(const TurnRecord& turn) {
    if (!turned_.insert(fmt::format("{}/{}", turn.axes.job, turn.turn)).second) return;
    spend(turn.usage, turn.cost_usd);
    if (turn.axes.kind == JobKind::kRepair) ++outcome_.repair_turns;
    if (!is_trajectory(turn.axes.kind)) return;
    ++outcome_.turns;
    ++outcome_.turns_by_status[std::string(name_of(turn.status))];
    ProblemOutcome& entry = problem(turn.axes.problem);
    ++entry.turns;
    if (turn.status != TurnStatus::kCorrect || !turn.verdict) return;
    ++entry.correct;
    const Verdict& verdict = *turn.verdict;
    const bool better = !entry.instructions || verdict.speedup.value_or(0) > entry.best_speedup.value_or(0);
    if (!better) return;
    entry.best_speedup = verdict.speedup;
    entry.instructions = verdict.instructions.verdict;
    entry.best_job = turn.axes.job;
    entry.best_turn = turn.turn;
    entry.baseline = verdict.baseline;
    entry.best_latency_ms.reset();
    for (const WorkloadVerdict& workload : verdict.workloads)
      if (workload.latency && (!entry.best_latency_ms || workload.speedup == verdict.speedup))
        entry.best_latency_ms = workload.latency->median_ms;
  }

  void add_end(const JobEndRecord& end) {
    if (!ended_.insert(end.axes.job).second) return;
    if (end.outcome == JobOutcome::kDead || end.outcome == JobOutcome::kLlmFatal)
      outcome_.failed.push_back(fmt::format("job {} ({}, sample {}) ended as {}: {}", end.axes.job,
                                            end.axes.problem, end.axes.sample, name_of(end.outcome),
                                            end.error));
    if (end.axes.kind == JobKind::kRepair) ++outcome_.repair_jobs;
    if (end.axes.kind == JobKind::kRationale) ++outcome_.rationale_jobs;
    if (!is_trajectory(end.axes.kind)) return;
    ++outcome_.trajectories;
    ++outcome_.ended_by[std::string(name_of(end.outcome))];
    ++problem(end.axes.problem).trajectories;
  }

  SweepOutcome outcome_;
  std::map<std::string, ProblemOutcome> problems_;
  bool known_ = false;
  std::set<std::string> ended_, turned_;  // a second copy of a record counts for nothing
};

std::string counts_line(const std::map<std::string, int64_t>& counts) {
  std::string line;
  for (const auto& [name, count] : counts)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, count);
  return line;
}

// A horizontal bar of at most `width` characters, for a look at the proportions.
std::string bar(int64_t count, int64_t largest, int width) {
  if (largest <= 0 || count <= 0) return "";
  const int64_t length = std::max<int64_t>(1, count * width / largest);
  std::string text;
  for (int64_t i = 0; i < length; ++i) text += "█";
  return text;
}

}  // namespace

Result<SweepOutcome> read_outcome(const std::filesystem::path& journal, const std::string& sweep) {
  Tally tally(sweep);
  Status fault;
  FIXIT_RETURN_IF_ERROR(read_journal(journal, [&](const JournalRecord& record) {
    if (record.sweep == sweep) fault = tally.add(record);
    return fault.ok();
  }));
  FIXIT_RETURN_IF_ERROR(fault);
  return tally.finish();
}

std::string outcome_table(const SweepOutcome& outcome,
                          const std::vector<std::pair<std::string, std::string>>& places) {
  std::string text = fmt::format("sweep {}: {} trajectories ({}), {} turns\n\n", outcome.sweep,
                                 outcome.trajectories, counts_line(outcome.ended_by), outcome.turns);
  int64_t largest = 0;
  for (const auto& [status, count] : outcome.turns_by_status) largest = std::max(largest, count);
  text += "  turns by status\n";
  for (const auto& [status, count] : outcome.turns_by_status)
    text += fmt::format("  {:<22}{:>6}  {}\n", status, count, bar(count, largest, 30));

  size_t width = 8;
  for (const ProblemOutcome& problem : outcome.problems) width = std::max(width, problem.problem.size());
  text += fmt::format("\n  {:<{}}  {:>7}  {:>12}  {:>12}  {:<12}  {}\n", "problem", width, "correct",
                      "best latency", "best speedup", "instructions", "baseline");
  for (const ProblemOutcome& problem : outcome.problems)
    text += fmt::format("  {:<{}}  {:>7}  {:>12}  {:>12}  {:<12}  {}\n", problem.problem, width,
                        fmt::format("{}/{}", problem.correct, problem.turns),
                        problem.best_latency_ms ? fmt::format("{:.3f} ms", *problem.best_latency_ms) : "-",
                        problem.best_speedup ? fmt::format("{:.3f}x", *problem.best_speedup) : "-",
                        problem.instructions ? name_of(*problem.instructions) : "-", problem.baseline);

  if (outcome.dataset) {
    const DatasetRecord& dataset = *outcome.dataset;
    text += fmt::format(
        "\n  recipe {}: {} failures -> {} repair jobs, {} repairs kept -> {} rationales -> {} rows\n",
        dataset.recipe, dataset.failures, outcome.repair_jobs, dataset.repairs, dataset.rationales,
        dataset.rows);
    if (!dataset.error.empty()) text += "  dataset error: " + dataset.error + "\n";
  }
  text += fmt::format("\n  tokens {}, cost {:.2f} USD\n", outcome.tokens, outcome.usd);
  for (const std::string& failed : outcome.failed) text += "  " + failed + "\n";
  if (!places.empty()) text += "\n";
  for (const auto& [what, where] : places) text += fmt::format("  {:<9}{}\n", what, where);
  return text;
}

}  // namespace fixit

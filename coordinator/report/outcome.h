// What came of a sweep, read from its journal.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/journal/journal.h"
#include "core/base/codec.h"

namespace fixit {

// The best CORRECT turn of a problem's rollouts, and how the problem's turns went.
struct ProblemOutcome {
  std::string problem;
  int64_t trajectories = 0;
  int64_t turns = 0;
  int64_t correct = 0;
  std::optional<double> best_speedup;  // reference latency / kernel latency, minimum over workloads
  std::optional<double> best_latency_ms;
  std::optional<InstructionVerdict> instructions;  // of the best turn
  std::string best_job;
  int best_turn = 0;
  std::string baseline;
  FIXIT_FIELDS(problem, trajectories, turns, correct, best_speedup, best_latency_ms, instructions, best_job,
               best_turn, baseline);
};

struct SweepOutcome {
  std::string sweep;
  int64_t trajectories = 0;                 // rollout and evaluate jobs that have ended
  std::map<std::string, int64_t> ended_by;  // JobOutcome name -> trajectories
  int64_t turns = 0;
  std::map<std::string, int64_t> turns_by_status;  // rollout and evaluate turns
  std::vector<ProblemOutcome> problems;            // by name
  int64_t repair_jobs = 0;
  int64_t repair_turns = 0;
  int64_t rationale_jobs = 0;
  std::optional<DatasetRecord> dataset;  // the last one built
  int64_t tokens = 0;                    // prompt and completion, all jobs
  double usd = 0;
  std::vector<std::string> failed;  // what became of quarantined and llm_fatal jobs, one line each
  FIXIT_FIELDS(sweep, trajectories, ended_by, turns, turns_by_status, problems, repair_jobs, repair_turns,
               rationale_jobs, dataset, tokens, usd, failed);
};

// kNotFound if the journal does not know the sweep.
Result<SweepOutcome> read_outcome(const std::filesystem::path& journal, const std::string& sweep);

// Tables for people. `places` are "what: where" lines to end with.
std::string outcome_table(const SweepOutcome& outcome,
                          const std::vector<std::pair<std::string, std::string>>& places);

}  // namespace fixit

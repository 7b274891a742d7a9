// The jobs that a chain asks for: repairs of mined failures, rationales of verified repairs.
#pragma once

#include <vector>

#include "coordinator/chain/sweep_records.h"
#include "coordinator/launch/launch.h"
#include "core/base/status.h"

namespace fixit {

// One repair job per failure, on lane (teacher, the failure's GPU kind), with the failure's problem, GPU,
// pack and sample. kInvalid if the frozen sweep lacks one of them.
Result<std::vector<PlannedJob>> repair_jobs(const SweepRecords& records,
                                            const std::vector<const TurnRecord*>& failures);

struct RepairedPair {  // pointers into the records it came from
  const TurnRecord* failure = nullptr;
  const TurnRecord* repair = nullptr;
};

// The repairs worth learning from: CORRECT turns of planned repair jobs, measured (a speedup of at least
// min_speedup), judged under an isolation that may feed datasets, and with the target's instructions executed
// where the recipe requires it. Of each job the best, the latest or all. Sorted by problem, failed turn,
// failed job, repair job, repair turn.
std::vector<RepairedPair> verified_repairs(const SweepRecords& records, const RecipeConfig& recipe);

// One rationale job per pair, on lane (teacher, "none").
Result<std::vector<PlannedJob>> rationale_jobs(const SweepRecords& records,
                                               const std::vector<RepairedPair>& pairs);

// The id that rationale_jobs() gives the pair's job.
std::string rationale_job_id(const SweepRecords& records, const RepairedPair& pair);

}  // namespace fixit

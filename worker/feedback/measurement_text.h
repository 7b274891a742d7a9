// Parts of feedback that tell figures of a verdict.
#pragma once

#include <string>

#include "core/record/verdict.h"

namespace fixit {

// What did not match: per failing workload and output the matched ratio, the worst errors and the first
// places.
std::string mismatch_text(const Verdict& verdict);

// Latency, reference latency and speedup per workload, then the distance to the target.
std::string performance_text(const Verdict& verdict, double target_speedup);

// Whether the required instructions were executed and how often; empty where that is unknown.
std::string instruction_text(const InstructionProof& proof);

}  // namespace fixit

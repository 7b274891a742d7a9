// Whether a candidate's work is done by the required instructions: found by disassembly, proven by execution.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/verdict.h"
#include "profiler/target/cpu/candidate_process.h"
#include "profiler/target/cpu/object_check.h"

namespace fixit {

// Executions counted in all, over all sites: at 10 to 80 microseconds under a breakpoint, under two seconds.
inline constexpr uint64_t kMaxCountedExecutions = 20000;
// Below this share of the workload's floating point operations the instructions are a token.
inline constexpr double kMinWorkShare = 0.5;

// Executions of one site that are counted before its breakpoint goes.
uint64_t cap_per_site(size_t sites);

// The verdict on counts that are known. `flops` is the workload's, 0 if unknown.
InstructionProof judge_counts(std::string_view family, const std::vector<CodeSite>& sites,
                              const std::vector<uint64_t>& executed, bool capped, double flops);

// Finds the sites, counts with `count` (offsets, cap) and judges. Never fails: what cannot be found out is
// kUnknown with the reason.
using CountExecutions =
    std::function<Result<CandidateProcess::TraceCounts>(const std::vector<uint64_t>& offsets, uint64_t cap)>;
InstructionProof prove_instructions(std::string_view object, std::string_view family, double flops,
                                    const CountExecutions& count);

}  // namespace fixit

// The messages that a model gets.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

// System message: the pack's text, then the target (architecture, compile command).
std::string system_message(const FrozenPack& pack, const GpuConfig& gpu);

// Task: the definition (JSON in its own order, without tags), each workload's axes with their values, the
// exact C signature of the entry point for binding c, tolerance and target speedup, and how to answer.
Result<std::string> task_message(const FrozenProblem& problem, const GpuConfig& gpu, double target_speedup);

// The exact declaration: extern "C" void run(const float* A, const float* B, float* C, int64_t M);
Result<std::string> entry_point_declaration(const FrozenProblem& problem);

// Repair: the task, the failed kernel, its feedback, and the request for a minimal mend.
std::string repair_message(const std::string& task, const std::string& failed_source,
                           const std::string& failed_feedback);

// Rationale: what the repair teacher saw, the repaired kernel, and the request for a first-person rationale
// from failure to plan that never mentions the repaired kernel. `rewrite_of` is a refused rationale with its
// rule.
std::string rationale_message(const std::string& task, const std::string& failed_source,
                              const std::string& failed_feedback, const std::string& repaired_source,
                              const RationaleStage& limits, const std::string& rewrite_of,
                              const std::string& rule);

}  // namespace fixit

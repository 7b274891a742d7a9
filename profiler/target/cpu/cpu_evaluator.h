// The evaluator of the CPU target.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "profiler/service/evaluator.h"

namespace fixit {

struct CpuEvaluatorOptions {
  std::filesystem::path runner;  // empty: fixit-cpu-runner beside this program
  std::optional<uint64_t> seed;  // of all evaluations; empty: a fresh random one for each
};

// As make_cpu_evaluator() in service/evaluator.h.
Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const GpuConfig& gpu, const std::string& profiler_id,
                                                      const CpuEvaluatorOptions& options);

}  // namespace fixit

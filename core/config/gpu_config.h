// configs/gpus/NAME.yaml: a GPU kind, or the host's CPU as one. Loading: config_files.h.
#pragma once

#include <string>
#include <vector>

#include "core/base/codec.h"

namespace fixit {

enum class TargetKind { kCpu, kCuda };

template <>
struct EnumNames<TargetKind> {
  static constexpr std::pair<TargetKind, std::string_view> values[] = {{TargetKind::kCpu, "cpu"},
                                                                       {TargetKind::kCuda, "cuda"}};
};

struct GpuConfig {
  std::string name;  // the file's stem; half of a lane's name
  TargetKind target = TargetKind::kCpu;
  std::string arch = "x86-64-v3";          // -march of g++; sm_90a, sm_100a for cuda
  std::vector<std::string> compile_flags;  // after the compiler's fixed ones
  std::string instruction_family = "fma";  // what a candidate must execute
  int cores = 1;                           // cpu: cores that candidate and reference are pinned to
  int warmup_calls = 10;
  int timed_calls = 50;
  double tolerance = 1e-2;         // atol = rtol
  double call_deadline_min_s = 2;  // one call may take max(this, call_deadline_factor * reference)
  double call_deadline_factor = 200;
  double evaluation_deadline_s = 30;  // timed calls stop being added after this
  double compile_deadline_s = 60;
  int memory_mib = 4096;                    // of a candidate's process, beyond its tensors
  std::string minimum_sandbox = "seccomp";  // verdicts below it are refused: seccomp, namespaces+seccomp
  FIXIT_FIELDS(name, target, arch, compile_flags, instruction_family, cores, warmup_calls, timed_calls,
               tolerance, call_deadline_min_s, call_deadline_factor, evaluation_deadline_s,
               compile_deadline_s, memory_mib, minimum_sandbox);
};

}  // namespace fixit

// What start() tells fixit-sandbox-exec, and what that program answers. Private to core/sandbox.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/codec.h"

namespace fixit {

struct LaunchPlan {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> read_only;
  std::string writable;
  std::vector<int> targets;  // numbers that the inherited descriptors get, in their order
  int64_t memory_bytes = 0;
  int64_t file_bytes = 0;
  int processes = 0;
  int cpu_seconds = 0;
  std::vector<int> cores;
  bool trace_me = false;
  bool compiler = false;
  bool namespaces = false;
  FIXIT_FIELDS(argv, environment, read_only, writable, targets, memory_bytes, file_bytes, processes,
               cpu_seconds, cores, trace_me, compiler, namespaces);
};

// Descriptors of fixit-sandbox-exec at its start.
inline constexpr int kPlanDescriptor = 3;
inline constexpr int kReportDescriptor = 4;
inline constexpr int kFirstInheritedDescriptor = 5;
// A descriptor number asked for in SandboxSpec::descriptors is below this.
inline constexpr int kHighestTarget = 256;

// Written to the report pipe in one piece (smaller than PIPE_BUF, so atomic). The end of the pipe without a
// failure means that the program was executed.
struct LaunchReport {
  enum Kind : int32_t { kProcesses = 1, kFailure = 2 };
  int32_t kind = 0;
  int32_t init = 0;  // first process of the pid namespace, as its starter sees it; 0: none
  int32_t program = 0;
  int32_t error = 0;    // errno of a failure
  char step[112] = {};  // what failed, zero-terminated
};

}  // namespace fixit

// A candidate's shared object in a sandboxed process of its own, called through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/record/verdict.h"
#include "core/sandbox/sandbox.h"

namespace fixit {

// One argument of run(), in the order of the definition: inputs, outputs, then the var axes.
struct TensorArgument {
  std::string name;
  size_t bytes = 0;
  bool output = false;  // inputs are mapped read-only in the candidate
};
struct ScalarArgument {
  std::string name;
  std::variant<int64_t, int32_t, double, float, bool> value;
};
using CandidateArgument = std::variant<TensorArgument, ScalarArgument>;

struct CandidateSpec {
  std::string object;  // bytes of the shared object
  std::string entry_point = "run";
  std::vector<CandidateArgument> arguments;
  int64_t memory_bytes = 0;  // beyond the tensors
  std::vector<int> cores;    // leave the caller's thread one of its own: handshakes then cost a microsecond
  bool trace = false;        // started under ptrace, for the instruction proof
  std::filesystem::path runner;  // the fixit-cpu-runner program
};

struct CallOutcome {
  enum class Kind { kReturned, kFault, kTimeout } kind = Kind::kReturned;
  std::optional<Fault> fault;
  int64_t wall_ns = 0;  // from outside, the handshake's own cost taken off, never below cpu_ns / cores
  int64_t cpu_ns = 0;   // CPU time of all the process's threads during the call
};

// Tensors live in memfd mappings, 256-byte aligned and ending at the end of their mapping with an unmapped
// guard page after it (and one before it); the slack before a tensor is a canary. The supervisor's mapping is
// writable, the candidate's view of inputs is not. Expected outputs are never in it. Not thread-safe; with
// `trace`, all calls must come from the thread that started it.
class CandidateProcess {
 public:
  // Starts, maps, locks down and loads. A candidate that fails to load is kInvalid with the loader's words;
  // an unusable sandbox is kDenied.
  static Result<std::unique_ptr<CandidateProcess>> start(const CandidateSpec& spec);
  virtual ~CandidateProcess() = default;  // kills it with everything it started

  virtual std::span<std::byte> tensor(size_t argument) = 0;  // the supervisor's view of a TensorArgument
  virtual CallOutcome call(int64_t deadline_ms) = 0;
  // After a call: which tensor's canary was overwritten, if any ("write before the start of C").
  virtual std::optional<Fault> check_canaries() = 0;
  // Work that outlives the call: other threads still running or CPU time still rising, now or between the two
  // latest calls. Evidence if so.
  virtual std::optional<std::string> leftover_work() = 0;
  virtual SandboxLevel level() const = 0;
  virtual int pid() const = 0;
  // Cost of the handshake alone, nanoseconds, median of no-op calls in this process.
  virtual int64_t handshake_ns() const = 0;
  // Traced processes only: one call under breakpoints at `offsets` (from the start of the object's file
  // image); counts executions per offset, removing a site's breakpoint after `cap` hits.
  struct TraceCounts {
    CallOutcome outcome;
    std::vector<uint64_t> executed;  // parallel to offsets
    bool capped = false;
  };
  virtual Result<TraceCounts> call_counting(const std::vector<uint64_t>& offsets, uint64_t cap,
                                            int64_t deadline_ms) = 0;
};

}  // namespace fixit

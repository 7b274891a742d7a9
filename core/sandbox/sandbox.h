// Runs a program that must be assumed hostile: compilers on candidate sources, candidates themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"

namespace fixit {

enum class SandboxLevel {
  kSeccomp,            // seccomp, resource limits, no new privileges, own process group
  kNamespacesSeccomp,  // the same in own user, mount, network, pid and ipc namespaces with a read-only view
};

template <>
struct EnumNames<SandboxLevel> {
  static constexpr std::pair<SandboxLevel, std::string_view> values[] = {
      {SandboxLevel::kSeccomp, "seccomp"}, {SandboxLevel::kNamespacesSeccomp, "namespaces+seccomp"}};
};

// The best level this machine permits, found once by trying. FIXIT_SANDBOX=seccomp in the environment asks
// for the lower level (tests of that level; machines whose namespaces misbehave).
SandboxLevel available_sandbox_level();

// Where a program of this project lies: beside the running program or in ../bin of it. kNotFound.
Result<std::filesystem::path> find_own_program(std::string_view name);

struct SandboxSpec {
  std::vector<std::string> argv;                   // argv[0] is an absolute path inside the view
  std::map<std::string, std::string> environment;  // nothing is inherited; a compiler's TMPDIR is `writable`
  // View of the file system, absolute paths bound read-only at the same place; missing ones are skipped.
  std::vector<std::filesystem::path> read_only;
  std::filesystem::path writable;  // one folder, bound read-write; empty: none. It is the working folder.
  // (ours, theirs): kept open there, theirs < 256; all others are closed, 0 to 2 are /dev/null where not
  // listed.
  std::vector<std::pair<int, int>> descriptors;
  int64_t memory_bytes = 0;  // address space of each process; 0: unlimited
  int64_t file_bytes = 0;    // largest file written
  int processes = 0;         // 0: unlimited; the kernel does not count those of the real root user
  int cpu_seconds = 0;
  std::vector<int> cores;  // affinity; empty: all
  bool trace_me = false;   // PTRACE_TRACEME before exec: the parent thread becomes the tracer
  bool compiler = false;   // seccomp filter for compilers (may fork and exec); else the candidates' filter
};

struct ExitStatus {
  bool exited = false;  // by exit(code); else by signal
  int code = 0;
  int signal = 0;
  bool timed_out = false;  // killed by us at its deadline
  std::string output;      // stdout and stderr together, bounded, of run_sandboxed
  bool output_truncated = false;
};

// A running sandboxed process and everything it started. The destructor kills all of it (SIGKILL to the pid
// namespace or process group) and reaps it: nothing is left behind. It also dies with the thread that started
// it, so that thread must outlive it; with `trace_me` that thread must destroy it, too. Thread-compatible.
class SandboxedProcess {
 public:
  static Result<std::unique_ptr<SandboxedProcess>> start(const SandboxSpec& spec);
  virtual ~SandboxedProcess() = default;
  virtual int pid() const = 0;  // in our namespace, of the program itself
  virtual SandboxLevel level() const = 0;
  virtual void kill() = 0;
  // Waits up to timeout_ms; kTimeout if it still runs. The status stays readable by further calls.
  virtual Result<ExitStatus> wait(int64_t timeout_ms) = 0;
};

// Runs to the end or the deadline, collecting at most output_limit bytes of its output (head and tail kept).
Result<ExitStatus> run_sandboxed(const SandboxSpec& spec, int64_t deadline_ms, size_t output_limit);

// For a trusted stub inside the sandbox, once candidate code is loaded: from here on no file can be opened,
// nothing executed, no socket made, no process signalled or traced.
Status lock_down_after_load();

// "socket" for 41; "number 9999" for an unknown one.
std::string system_call_name(int number);

}  // namespace fixit

// Counts executions of instructions in a traced process by breakpoints.
//
// A breakpoint's instruction is not stepped in place, which would need every other thread stopped meanwhile:
// a copy of it, followed by a jump back, lies in scratch memory of the process, and the thread that hits the
// breakpoint goes on there. The breakpoint never leaves, so counts are exact with any number of threads, at
// one stop a hit.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"

namespace fixit {

// The tracer of one process that was started with PTRACE_TRACEME. Everything must happen on the thread that
// started it: ptrace belongs to threads.
class InstructionTrace {
 public:
  explicit InstructionTrace(int pid) : pid_(pid) {}
  InstructionTrace(const InstructionTrace&) = delete;
  InstructionTrace& operator=(const InstructionTrace&) = delete;

  // Takes the stop at exec and lets the program run. kDenied with the reason.
  Status begin();

  // Puts breakpoints at `offsets` of the object loaded at `load_base`; `scratch` is executable memory of
  // `scratch_bytes` near it. kUnsupported for instructions that cannot run elsewhere (jumps, calls), kCorrupt
  // where the process's code is not the object's.
  Status insert(const std::string& object, uint64_t load_base, const std::vector<uint64_t>& offsets,
                uint64_t scratch, uint64_t scratch_bytes, uint64_t cap);
  Status remove_all();

  // Serves every stop that is pending; true if there was one. After the process's end: ended() is true.
  bool serve();
  bool ended() const { return ended_; }

  const std::vector<uint64_t>& counts() const { return counts_; }
  bool capped() const { return capped_; }

 private:
  struct Site {
    uint64_t address = 0;
    uint64_t copy = 0;
    uint8_t original = 0;
    bool inserted = false;
  };
  void serve_stop(int tid, int status);
  bool serve_breakpoint(int tid);
  Status write_memory(uint64_t address, const void* bytes, size_t size);

  int pid_;
  UniqueFd memory_;
  std::vector<Site> sites_;    // sorted by address
  std::vector<size_t> order_;  // sites_[i] counts into counts_[order_[i]]
  std::vector<uint64_t> counts_;
  std::set<int> threads_;
  uint64_t cap_ = 0;
  bool capped_ = false;
  bool ended_ = false;
};

}  // namespace fixit

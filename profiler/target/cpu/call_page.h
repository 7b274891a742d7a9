// The page that the supervisor and the runner of a candidate share, and where tensors lie in their mappings.
// Private to the CPU target; both sides are built together, so the layout has no version.
//
// Once candidate code is loaded it can write every byte of this page. The supervisor therefore takes nothing
// from it but the word that a call is over, and texts for people. Why that word may come from here and not
// through a pipe: a pipe's descriptor would be as much in the candidate's hands, and costs two system calls
// in the timed window. A forged word gains nothing: outputs are compared at once, so they must be right by
// then, and work that goes on behind it is CPU time that leftover_work() sees.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace fixit {

inline constexpr size_t kMaxArguments = 46;  // 6 + 8 in registers, 32 on the stack
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kTensorAlignment = 256;
inline constexpr int kPageDescriptor = 3;          // in the runner; tensors follow in order of the arguments
inline constexpr size_t kScratchBytes = 2u << 20;  // code copies of a traced process

struct CallArgument {
  enum Kind : uint32_t { kInput, kOutput, kInteger, kFloating };
  uint32_t kind = kInteger;
  uint64_t bytes = 0;          // of a tensor
  uint64_t mapping_bytes = 0;  // of its memory file
  uint64_t bits = 0;           // of a scalar: sign-extended integer, or the low bits of an xmm register
  uint64_t address = 0;        // of a tensor in the runner, from the runner before it loads the candidate
};

// What a signal handler of the runner saw. Written by a process under the candidate's control: a hint, no
// evidence.
struct FaultHint {
  int32_t signal = 0;
  int32_t write = 0;     // the access was a write
  uint64_t address = 0;  // si_addr; for SIGSYS the number of the system call
  uint64_t instruction = 0;
  uint64_t stack = 0;
  uint64_t stack_words[64] = {};
};

enum class CallRequest : uint32_t { kLoad = 1, kArm = 2, kArmNothing = 3, kGo = 4 };

// A request's number is unique in the process's life: (sequence << 3) | CallRequest. The reply repeats it.
struct CallPage {
  // From the supervisor, before the runner starts.
  uint32_t argument_count = 0;
  uint32_t traced = 0;
  char entry_point[256] = {};
  CallArgument arguments[kMaxArguments] = {};

  alignas(64) std::atomic<uint32_t> request{0};
  std::atomic<uint32_t> parked{0};  // the runner sleeps on `request`
  alignas(64) std::atomic<uint32_t> reply{0};
  alignas(64) std::atomic<uint32_t> settled{
      0};  // number of the last call whose CPU time the kernel has booked

  // From the runner.
  alignas(64) int32_t load_failed = 0;  // 1: the object; 2: the sandbox
  char text[1024] = {};                 // the loader's words; later an exception's
  uint64_t load_base = 0;
  uint64_t stack_top = 0;
  uint64_t stack_bytes = 0;
  uint64_t scratch = 0;  // kScratchBytes of readable, executable memory; 0 unless traced
  FaultHint hint;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}
inline constexpr size_t mapping_bytes_of(size_t tensor_bytes) {
  return round_up(tensor_bytes == 0 ? 1 : tensor_bytes, kPageBytes);
}
// Tensors begin at a multiple of kTensorAlignment, as near to the end of their mapping as that allows.
inline constexpr size_t tensor_offset(size_t tensor_bytes) {
  return mapping_bytes_of(tensor_bytes) - round_up(tensor_bytes, kTensorAlignment);
}

// A wait on a word that another process changes; returns on a wake, a change, the timeout or an interruption.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns);  // < 0: no timeout
void futex_wake(std::atomic<uint32_t>& word);

}  // namespace fixit

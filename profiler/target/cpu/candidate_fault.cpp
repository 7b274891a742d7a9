#include "profiler/target/cpu/candidate_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "profiler/target/cpu/elf_image.h"

namespace fixit {
namespace {

constexpr uint64_t kNear = 1u << 20;  // farther from every tensor than this, a distance explains nothing
constexpr uint64_t kBelowStack = 1u << 20;

bool in_code(const ElfImage& image, uint64_t offset) {
  return std::any_of(image.code().begin(), image.code().end(), [&](const ElfCode& code) {
    return offset >= code.address && offset - code.address < code.bytes.size();
  });
}

std::string place_in_image(const ElfImage& image, uint64_t offset) {
  if (!in_code(image, offset)) return "";
  const ElfSymbol* function = image.function_at(offset);
  if (function == nullptr) return fmt::format("{:#x}", offset);
  return fmt::format("{}+{:#x}", demangled(function->name), offset - function->value);
}

// The faulting instruction, or else the first return address into the object found on the stack.
std::string where(const FaultHint& hint, const CandidateLayout& layout, const std::string& object) {
  const auto image = ElfImage::parse(object);
  if (!image.ok() || hint.signal == 0) return "";
  const std::string here = place_in_image(*image, hint.instruction - layout.load_base);
  if (!here.empty()) return here;
  for (const uint64_t word : hint.stack_words) {
    const std::string caller = place_in_image(*image, word - layout.load_base);
    if (!caller.empty()) return "called from " + caller;
  }
  return "";
}

uint64_t distance_to(const MappedTensor& tensor, uint64_t address) {
  if (address < tensor.address) return tensor.address - address;
  const uint64_t end = tensor.address + tensor.bytes;
  return address < end ? 0 : address - end + 1;
}

std::string nearest_tensor(const CandidateLayout& layout, const FaultHint& hint) {
  const MappedTensor* nearest = nullptr;
  for (const MappedTensor& tensor : layout.tensors)
    if (nearest == nullptr || distance_to(tensor, hint.address) < distance_to(*nearest, hint.address))
      nearest = &tensor;
  if (nearest == nullptr || distance_to(*nearest, hint.address) > kNear) return "";
  const std::string name = (nearest->output ? "output " : "input ") + nearest->name;
  if (distance_to(*nearest, hint.address) == 0)
    return fmt::format("{} {}{} at byte {}", hint.write ? "write to" : "access to",
                       nearest->output ? "" : "read-only ", name, hint.address - nearest->address);
  const std::string access = hint.write ? "write" : "read";
  if (hint.address < nearest->address)
    return fmt::format("{} {} bytes before the start of {}", access, nearest->address - hint.address, name);
  const uint64_t past = hint.address - nearest->address - nearest->bytes;
  if (past == 0) return fmt::format("{} right past the end of {}", access, name);
  return fmt::format("{} {} bytes past the end of {}", access, past, name);
}

bool is_stack_overflow(const CandidateLayout& layout, const FaultHint& hint) {
  if (layout.stack_bytes == 0 || layout.stack_bytes > layout.stack_top) return false;
  const uint64_t lowest = layout.stack_top - layout.stack_bytes;
  return hint.address >= lowest - std::min(lowest, kBelowStack) && hint.address <= layout.stack_top;
}

void explain_memory_fault(const CandidateLayout& layout, const FaultHint& hint, Fault& fault) {
  if (is_stack_overflow(layout, hint)) {
    fault.kind = "stack overflow";
    fault.detail = fmt::format("address {:#x}; the stack has {} bytes", hint.address, layout.stack_bytes);
    return;
  }
  const std::string near = nearest_tensor(layout, hint);
  if (!near.empty())
    fault.detail = fmt::format("{} (address {:#x})", near, hint.address);
  else if (hint.address < kPageBytes)
    fault.detail = fmt::format("null pointer (address {:#x})", hint.address);
  else
    fault.detail = fmt::format("address {:#x}, near no tensor", hint.address);
}

std::string name_of_signal(int number) {
  switch (number) {
    case SIGSEGV:
      return "segmentation fault";
    case SIGBUS:
      return "bus error";
    case SIGFPE:
      return "arithmetic exception";
    case SIGILL:
      return "illegal instruction";
    case SIGABRT:
      return "abort";
    case SIGXCPU:
      return "CPU time limit";
    case SIGTRAP:
      return "trap";
    case SIGKILL:
      return "killed";
    default:
      return fmt::format("signal {}", number);
  }
}

}  // namespace

Fault explain_end(const ExitStatus& status, const CandidateLayout& layout, const FaultHint& hint,
                  const std::string& text, const std::string& object) {
  Fault fault;
  if (status.exited) {
    fault.kind = fmt::format("exit({})", status.code);
    fault.detail = "the process ended itself during the call";
    return fault;
  }
  const bool noted = hint.signal == status.signal;
  if (noted) fault.where = where(hint, layout, object);
  fault.kind = name_of_signal(status.signal);
  fault.detail = fmt::format("signal {}", status.signal);
  if (status.signal == SIGSYS) {
    const bool named = noted && hint.address <= static_cast<uint64_t>(std::numeric_limits<int>::max());
    fault.kind = "forbidden system call";
    if (named) fault.kind += " " + system_call_name(static_cast<int>(hint.address));
    fault.detail = "the sandbox permits computing only";
  } else if (status.signal == SIGABRT && !text.empty()) {
    fault.kind = "uncaught exception";
    fault.detail = text;
  } else if (status.signal == SIGKILL) {
    fault.detail = "by the kernel, at a memory or CPU time limit";
  } else if (noted && (status.signal == SIGSEGV || status.signal == SIGBUS)) {
    explain_memory_fault(layout, hint, fault);
  }
  return fault;
}

}  // namespace fixit

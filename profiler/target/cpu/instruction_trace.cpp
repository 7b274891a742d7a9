#include "profiler/target/cpu/instruction_trace.h"

#include <capstone/capstone.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "profiler/target/cpu/elf_image.h"

namespace fixit {
namespace {

constexpr uint8_t kBreakpoint = 0xcc;
constexpr uint64_t kCopyBytes = 32;  // the longest instruction has 15 bytes, the jump back 14

Status failed(const std::string& what, ErrorCode code = ErrorCode::kDenied) {
  return Status(code, what + ": " + std::strerror(errno));
}

class Relocator {
 public:
  Relocator() {
    opened_ = cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) == CS_ERR_OK &&
              cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK;
    if (opened_) instruction_ = cs_malloc(handle_);
  }
  Relocator(const Relocator&) = delete;
  Relocator& operator=(const Relocator&) = delete;
  ~Relocator() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (opened_) cs_close(&handle_);
  }

  // The instruction at the beginning of `code`, made to run at `to` instead of `from`, and a jump to what
  // follows it.
  Result<std::string> move(std::string_view code, uint64_t from, uint64_t to) {
    auto bytes = reinterpret_cast<const uint8_t*>(code.data());
    size_t left = code.size();
    uint64_t address = from;
    if (instruction_ == nullptr || !cs_disasm_iter(handle_, &bytes, &left, &address, instruction_))
      return Status(ErrorCode::kCorrupt, "bytes do not disassemble");
    for (const unsigned group : {CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET, CS_GRP_INT})
      if (cs_insn_group(handle_, instruction_, group))
        return Status(ErrorCode::kUnsupported, std::string("cannot count ") + instruction_->mnemonic);
    std::string copy(code.substr(0, instruction_->size));
    FIXIT_RETURN_IF_ERROR(adjust(copy, from, to));
    const uint64_t next = from + instruction_->size;
    copy.append("\xff\x25\x00\x00\x00\x00", 6);  // jmp [rip + 0], the address follows
    copy.append(reinterpret_cast<const char*>(&next), sizeof next);
    return copy;
  }

 private:
  Status adjust(std::string& copy, uint64_t from, uint64_t to) {
    const cs_x86& detail = instruction_->detail->x86;
    for (uint8_t i = 0; i < detail.op_count; ++i) {
      const cs_x86_op& operand = detail.operands[i];
      if (operand.type != X86_OP_MEM || operand.mem.base != X86_REG_RIP) continue;
      const size_t place = detail.encoding.disp_offset;
      int32_t displacement = 0;
      if (place + sizeof displacement > copy.size())
        return Status(ErrorCode::kUnsupported, "unusual displacement");
      std::memcpy(&displacement, copy.data() + place, sizeof displacement);
      const int64_t moved = displacement + static_cast<int64_t>(from - to);
      if (displacement != operand.mem.disp || moved != static_cast<int32_t>(moved))
        return Status(ErrorCode::kUnsupported, "a displacement does not reach");
      displacement = static_cast<int32_t>(moved);
      std::memcpy(copy.data() + place, &displacement, sizeof displacement);
    }
    return Status();
  }

  csh handle_ = 0;
  bool opened_ = false;
  cs_insn* instruction_ = nullptr;
};

}  // namespace

Status InstructionTrace::begin() {
  int status = 0;
  while (waitpid(pid_, &status, __WALL) < 0)
    if (errno != EINTR) return failed("waiting for the traced process");
  if (!WIFSTOPPED(status)) return Status(ErrorCode::kDenied, "the traced process ended before it began");
  threads_.insert(pid_);
  if (ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0)
    return failed("PTRACE_SETOPTIONS");
  memory_ = UniqueFd(open(fmt::format("/proc/{}/mem", pid_).c_str(), O_RDWR | O_CLOEXEC));
  if (!memory_) return failed("opening the traced process's memory");
  return ptrace(PTRACE_CONT, pid_, nullptr, nullptr) == 0 ? Status() : failed("PTRACE_CONT");
}

Status InstructionTrace::write_memory(uint64_t address, const void* bytes, size_t size) {
  if (pwrite(memory_.get(), bytes, size, static_cast<off_t>(address)) != static_cast<ssize_t>(size))
    return failed("writing the traced process's memory");
  return Status();
}

Status InstructionTrace::insert(const std::string& object, uint64_t load_base,
                                const std::vector<uint64_t>& offsets, uint64_t scratch,
                                uint64_t scratch_bytes, uint64_t cap) {
  if (scratch == 0 || offsets.size() > scratch_bytes / kCopyBytes)
    return Status(ErrorCode::kUnsupported, fmt::format("no room to count {} instructions", offsets.size()));
  FIXIT_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::parse(object));
  cap_ = cap;
  capped_ = false;
  counts_.assign(offsets.size(), 0);
  order_.resize(offsets.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
  sites_.clear();
  Relocator relocator;
  for (const size_t index : order_) {
    const uint64_t offset = offsets[index];
    Site site{load_base + offset, scratch + sites_.size() * kCopyBytes, 0, false};
    if (!sites_.empty() && sites_.back().address == site.address)
      return Status(ErrorCode::kInvalid, fmt::format("offset {:#x} is given twice", offset));
    const std::string_view code = image.up_to(offset, 15);
    auto copy = relocator.move(code, site.address, site.copy);
    if (!copy.ok()) return copy.status().with_context(fmt::format("instruction at {:#x}", offset));
    const size_t length = copy->size() - 14;
    char present[16] = {};
    if (pread(memory_.get(), present, length, static_cast<off_t>(site.address)) !=
            static_cast<ssize_t>(length) ||
        code.substr(0, length) != std::string_view(present, length))
      return Status(ErrorCode::kCorrupt,
                    fmt::format("the process's code at {:#x} is not the object's", offset));
    FIXIT_RETURN_IF_ERROR(write_memory(site.copy, copy->data(), copy->size()));
    site.original = static_cast<uint8_t>(code[0]);
    sites_.push_back(site);
  }
  for (Site& site : sites_) {
    FIXIT_RETURN_IF_ERROR(write_memory(site.address, &kBreakpoint, 1));
    site.inserted = true;
  }
  return Status();
}

Status InstructionTrace::remove_all() {
  for (Site& site : sites_) {
    if (!site.inserted) continue;
    FIXIT_RETURN_IF_ERROR(write_memory(site.address, &site.original, 1));
    site.inserted = false;
  }
  return Status();
}

bool InstructionTrace::serve() {
  // The program leads its own process group, so this waits for its threads only. An end of the program itself
  // is left for its owner to collect.
  siginfo_t info = {};
  if (waitid(P_PGID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
    ended_ = ended_ || errno == ECHILD;
    return false;
  }
  if (info.si_pid == 0) return false;
  const bool stopped = info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED;
  if (!stopped && info.si_pid == pid_) {
    ended_ = true;
    return false;
  }
  int status = 0;
  if (waitpid(info.si_pid, &status, __WALL | WNOHANG) != info.si_pid) return false;
  if (WIFSTOPPED(status))
    serve_stop(info.si_pid, status);
  else
    threads_.erase(info.si_pid);
  return true;
}

void InstructionTrace::serve_stop(int tid, int status) {
  long signal = WSTOPSIG(status);
  const bool is_new = threads_.insert(tid).second;
  const bool is_event = status >> 16 != 0;
  if (is_event || (is_new && signal == SIGSTOP) || (signal == SIGTRAP && serve_breakpoint(tid))) signal = 0;
  ptrace(PTRACE_CONT, tid, nullptr, signal);  // fails if it was killed meanwhile: its end is the next event
}

bool InstructionTrace::serve_breakpoint(int tid) {
  user_regs_struct registers = {};
  if (ptrace(PTRACE_GETREGS, tid, nullptr, &registers) != 0) return false;
  const uint64_t address = registers.rip - 1;
  const auto site = std::lower_bound(sites_.begin(), sites_.end(), address,
                                     [](const Site& one, uint64_t wanted) { return one.address < wanted; });
  if (site == sites_.end() || site->address != address) return false;
  // Threads that were already stopped here when a site reached its cap still go on through the copy.
  if (site->inserted) {
    uint64_t& count = counts_[order_[static_cast<size_t>(site - sites_.begin())]];
    if (++count >= cap_) {
      capped_ = true;
      site->inserted = !write_memory(site->address, &site->original, 1).ok();
    }
  }
  registers.rip = site->copy;
  return ptrace(PTRACE_SETREGS, tid, nullptr, &registers) == 0;
}

}  // namespace fixit

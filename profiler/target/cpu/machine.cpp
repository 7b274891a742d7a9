#include "profiler/target/cpu/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace fixit {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  return cores;
}

void set_affinity(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  // Best effort: a refused affinity costs quiet, and the spread of the samples shows it.
  static_cast<void>(sched_setaffinity(0, sizeof(set), &set));
}

// Level of the x86-64 psABI that this machine reaches.
int machine_level() {
  if (__builtin_cpu_supports("x86-64-v4")) return 4;
  if (__builtin_cpu_supports("x86-64-v3")) return 3;
  if (__builtin_cpu_supports("x86-64-v2")) return 2;
  return 1;
}

struct NamedCore {
  std::string_view name;
  int level;       // of the psABI that its instruction set contains
  bool (*also)();  // what else it has; null: nothing that compilers use unasked
};

bool has_amx() {
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16");
}
bool has_bf16() {
  return __builtin_cpu_supports("avx512bf16");
}

constexpr NamedCore kCores[] = {
    {"x86-64", 1, nullptr},         {"x86-64-v2", 2, nullptr},      {"x86-64-v3", 3, nullptr},
    {"x86-64-v4", 4, nullptr},      {"nehalem", 2, nullptr},        {"haswell", 3, nullptr},
    {"broadwell", 3, nullptr},      {"skylake", 3, nullptr},        {"znver1", 3, nullptr},
    {"znver2", 3, nullptr},         {"znver3", 3, nullptr},         {"skylake-avx512", 4, nullptr},
    {"cascadelake", 4, nullptr},    {"icelake-server", 4, nullptr}, {"znver4", 4, has_bf16},
    {"sapphirerapids", 4, has_amx},
};

}  // namespace

std::string cpu_product_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown x86-64 processor";
}

std::string kernel_release() {
  utsname name{};
  return uname(&name) == 0 ? name.release : "unknown";
}

Result<std::vector<int>> target_cores(int count) {
  const std::vector<int> cores = allowed_cores();
  if (count < 1 || count > static_cast<int>(cores.size()))
    return Status(ErrorCode::kUnsupported,
                  fmt::format("the target asks for {} cores, this process may use {}; change `cores` in its "
                              "configs/gpus file or give the profiler more",
                              count, cores.size()));
  return std::vector<int>(cores.end() - count, cores.end());
}

Status check_architecture(const std::string& arch) {
  if (arch == "native") return {};
  std::vector<std::string_view> names;
  for (const NamedCore& core : kCores) {
    names.push_back(core.name);
    if (core.name != arch) continue;
    if (machine_level() < core.level)
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{} needs x86-64-v{}, this machine ({}) has x86-64-v{}", arch, core.level,
                                cpu_product_name(), machine_level()));
    if (core.also != nullptr && !core.also())
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{} needs extensions that this machine ({}) lacks; x86-64-v{} would run",
                                arch, cpu_product_name(), core.level));
    return {};
  }
  return Status(ErrorCode::kUnsupported,
                fmt::format("arch '{}' is not known; use native or one of {}", arch, fmt::join(names, ", ")));
}

double flops_per_cycle_bound() {
  if (has_amx()) return 1024;  // 16 x 16 x 32 BF16 multiply-adds each 16 cycles
  if (has_bf16()) return 128;
  return 64;
}

Status check_tracing() {
  const pid_t child = fork();
  if (child < 0) return Status(ErrorCode::kDenied, fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : errno & 0x7F);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Status(ErrorCode::kDenied,
                fmt::format("children cannot be traced (ptrace: {}): instructions are not counted",
                            WIFEXITED(status) ? std::strerror(WEXITSTATUS(status)) : "killed"));
}

KeepOffCores::KeepOffCores(const std::vector<int>& cores) : before_(allowed_cores()) {
  std::vector<int> others;
  for (const int core : before_)
    if (std::ranges::find(cores, core) == cores.end()) others.push_back(core);
  if (others.empty())
    before_.clear();
  else
    set_affinity(others);
}

KeepOffCores::~KeepOffCores() {
  if (!before_.empty()) set_affinity(before_);
}

}  // namespace fixit

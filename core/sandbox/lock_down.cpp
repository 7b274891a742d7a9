#include <seccomp.h>

#include <cstdlib>

#include "core/sandbox/sandbox.h"
#include "core/sandbox/system_call_filter.h"

namespace fixit {

Status lock_down_after_load() {
  return install_system_call_filter(SystemCallFilter::kCandidateLocked, true);
}

std::string system_call_name(int number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  std::string result = name != nullptr ? name : "number " + std::to_string(number);
  std::free(name);
  return result;
}

}  // namespace fixit

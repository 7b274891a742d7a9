// The seccomp filters. Private to core/sandbox: programs get them through SandboxSpec and
// lock_down_after_load().
#pragma once

#include "core/base/status.h"

namespace fixit {

enum class SystemCallFilter {
  kCompiler,       // everything but what leaves the sandbox: network, namespaces, tracing, kernel interfaces
  kCandidateLoad,  // an allow-list that lets a program start and load shared objects
  kCandidateLocked,  // an allow-list for computing: memory, threads, clocks, exit
};

// Installs the filter on every thread of this process, for ever; it also sets no_new_privs. A call outside an
// allow-list fails with EPERM where honest code survives that; one that only an attack makes raises SIGSYS,
// which ends the process unless a trusted stub installed a handler before (it can then tell which call it
// was). `own_session` keeps its processes in one process group, for sandboxes that are ended by killing that
// group. kDenied with the reason where the kernel refuses.
Status install_system_call_filter(SystemCallFilter filter, bool own_session);

}  // namespace fixit

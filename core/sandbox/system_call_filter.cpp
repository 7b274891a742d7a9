#include "core/sandbox/system_call_filter.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace fixit {
namespace {

// Leaving the sandbox or looking into another process: no compiler and no kernel has a use for these.
constexpr const char* kForbidden[] = {"socket",
                                      "socketpair",
                                      "connect",
                                      "bind",
                                      "listen",
                                      "accept",
                                      "accept4",
                                      "sendto",
                                      "sendmsg",
                                      "sendmmsg",
                                      "recvfrom",
                                      "recvmsg",
                                      "recvmmsg",
                                      "ptrace",
                                      "mount",
                                      "umount2",
                                      "pivot_root",
                                      "chroot",
                                      "setns",
                                      "unshare",
                                      "open_tree",
                                      "move_mount",
                                      "fsopen",
                                      "fsconfig",
                                      "fsmount",
                                      "fspick",
                                      "mount_setattr",
                                      "bpf",
                                      "keyctl",
                                      "add_key",
                                      "request_key",
                                      "userfaultfd",
                                      "io_uring_setup",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "perf_event_open",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "process_madvise",
                                      "pidfd_getfd",
                                      "kcmp",
                                      "init_module",
                                      "finit_module",
                                      "delete_module",
                                      "kexec_load",
                                      "kexec_file_load",
                                      "reboot",
                                      "swapon",
                                      "swapoff",
                                      "open_by_handle_at",
                                      "name_to_handle_at",
                                      "fanotify_init",
                                      "quotactl",
                                      "acct",
                                      "settimeofday",
                                      "clock_settime",
                                      "clock_adjtime",
                                      "adjtimex",
                                      "iopl",
                                      "ioperm",
                                      "modify_ldt",
                                      "syslog",
                                      "vhangup",
                                      "lookup_dcookie"};

// Beyond those, forbidden to a candidate: new programs and processes, signals to others, code from elsewhere.
constexpr const char* kForbiddenToCandidates[] = {"fork",
                                                  "vfork",
                                                  "execveat",
                                                  "kill",
                                                  "tkill",
                                                  "pidfd_open",
                                                  "shmget",
                                                  "shmat",
                                                  "mq_open",
                                                  "memfd_create",
                                                  "personality",
                                                  "pidfd_send_signal",
                                                  "rt_sigqueueinfo",
                                                  "rt_tgsigqueueinfo"};

// What malloc, threads, OpenMP, clocks and a return to the caller need.
constexpr const char* kComputing[] = {"read",
                                      "write",
                                      "writev",
                                      "close",
                                      "lseek",
                                      "fstat",
                                      "brk",
                                      "munmap",
                                      "mremap",
                                      "madvise",
                                      "mincore",
                                      "futex",
                                      "sched_yield",
                                      "sched_getaffinity",
                                      "sched_getparam",
                                      "sched_getscheduler",
                                      "clock_gettime",
                                      "clock_getres",
                                      "gettimeofday",
                                      "time",
                                      "nanosleep",
                                      "clock_nanosleep",
                                      "getpid",
                                      "gettid",
                                      "getcpu",
                                      "set_robust_list",
                                      "get_robust_list",
                                      "rseq",
                                      "rt_sigprocmask",
                                      "rt_sigreturn",
                                      "sigaltstack",
                                      "exit",
                                      "exit_group",
                                      "restart_syscall",
                                      "getrandom",
                                      "membarrier",
                                      "sysinfo",
                                      "uname",
                                      "getrusage",
                                      "times",
                                      "prlimit64",
                                      "getrlimit",
                                      "set_tid_address",
                                      "arch_prctl",
                                      "getuid",
                                      "geteuid",
                                      "getgid",
                                      "getegid",
                                      "getppid"};

// What starting a program and loading its libraries needs on top.
constexpr const char* kLoading[] = {
    "execve",  "open",       "openat",      "access",    "faccessat",  "faccessat2", "pread64",      "stat",
    "lstat",   "newfstatat", "statx",       "readlink",  "readlinkat", "getcwd",     "rt_sigaction", "prctl",
    "seccomp", "mmap",       "mprotect",    "fcntl",     "ioctl",      "poll",       "ppoll",        "dup",
    "dup2",    "dup3",       "close_range", "fadvise64", "getdents64", "pipe2"};

class Filter {
 public:
  explicit Filter(uint32_t default_action) : context_(seccomp_init(default_action)) {
    if (context_ == nullptr) error_ = -ENOMEM;
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }

  template <typename... Conditions>
  void add(uint32_t action, const char* name, Conditions... conditions) {
    if (error_ != 0) return;
    const int number = seccomp_syscall_resolve_name(name);
    // A name that this libseccomp or machine does not know cannot be called through an allow-list either.
    if (number < 0) return;
    const int result = seccomp_rule_add(context_, action, number, sizeof...(conditions), conditions...);
    if (result < 0 && result != -EACCES) error_ = result;  // EACCES: the same as the default action
  }
  template <size_t count>
  void add_all(uint32_t action, const char* const (&names)[count]) {
    for (const char* name : names) add(action, name);
  }

  Status load() {
    // Every thread gets it: one that an object's constructor started before the lock-down must not escape.
    if (error_ == 0) error_ = seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1);
    if (error_ == 0) error_ = seccomp_load(context_);
    if (error_ == 0) return Status();
    return Status(ErrorCode::kDenied,
                  std::string("installing the seccomp filter: ") + std::strerror(-error_));
  }

 private:
  scmp_filter_ctx context_;
  int error_ = 0;
};

constexpr uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);

void add_compiler_rules(Filter& filter) {
  filter.add_all(kRefuse, kForbidden);
  for (const uint64_t flag :
       {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET})
    filter.add(kRefuse, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
}

void add_candidate_rules(Filter& filter, bool locked) {
  filter.add_all(SCMP_ACT_TRAP, kForbidden);
  filter.add_all(SCMP_ACT_TRAP, kForbiddenToCandidates);
  filter.add_all(SCMP_ACT_ALLOW, kComputing);
  filter.add(SCMP_ACT_ALLOW, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  filter.add(SCMP_ACT_TRAP, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  if (!locked) {
    filter.add_all(SCMP_ACT_ALLOW, kLoading);
    filter.add(SCMP_ACT_ALLOW, "tgkill");
    return;
  }
  // abort() and pthread_kill() signal their own process. Its number is what the process sees of itself.
  filter.add(SCMP_ACT_ALLOW, "tgkill", SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
  filter.add(SCMP_ACT_TRAP, "tgkill", SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(getpid())));
  filter.add(SCMP_ACT_TRAP, "execve");
  filter.add(SCMP_ACT_TRAP, "seccomp");
  for (const char* name : {"mmap", "mprotect"}) {
    filter.add(SCMP_ACT_ALLOW, name, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    filter.add(SCMP_ACT_TRAP, name, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
  }
}

}  // namespace

Status install_system_call_filter(SystemCallFilter kind, bool own_session) {
  const bool compiler = kind == SystemCallFilter::kCompiler;
  Filter filter(compiler ? SCMP_ACT_ALLOW : kRefuse);
  // clone3 passes its flags in memory, where a filter cannot look; without it the C library falls back to
  // clone.
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  if (compiler) {
    add_compiler_rules(filter);
    if (own_session)
      for (const char* name : {"setsid", "setpgid"}) filter.add(kRefuse, name);
  } else {
    add_candidate_rules(filter, kind == SystemCallFilter::kCandidateLocked);
  }
  return filter.load();
}

}  // namespace fixit

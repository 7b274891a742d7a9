// fixit-sandbox-exec: puts a program into a sandbox. A program of its own, because namespaces, mounts and
// libseccomp need ordinary code between fork and exec, which a process with threads may not run there. Not
// for people: start() in core/sandbox runs it with a LaunchPlan on descriptor 3 and reads LaunchReports
// from 4.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/sandbox/exec/file_view.h"
#include "core/sandbox/launch_plan.h"
#include "core/sandbox/system_call_filter.h"

namespace fixit {
namespace {

int report_descriptor = kReportDescriptor;

[[noreturn]] void fail(const std::string& step, int error = errno) {
  LaunchReport report{LaunchReport::kFailure, 0, 0, error, {}};
  step.copy(report.step, sizeof report.step - 1);
  (void)!write(report_descriptor, &report, sizeof report);
  _exit(127);
}

LaunchPlan read_plan() {
  struct stat info = {};
  if (fstat(kPlanDescriptor, &info) != 0) fail("reading the plan");
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (pread(kPlanDescriptor, bytes.data(), bytes.size(), 0) != info.st_size) fail("reading the plan");
  auto plan = decode<LaunchPlan>(bytes);
  if (!plan.ok()) fail("decoding the plan: " + plan.status().message(), 0);
  return std::move(*plan);
}

void write_file(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail(path);
  close(file);
}

// Inside, the program is an ordinary user: user 0 of a user namespace would get capabilities back at exec.
void enter_namespaces(const LaunchPlan& plan) {
  const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) != 0)
    fail("unshare (are user namespaces permitted here?)");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "1000 " + user + " 1");
  write_file("/proc/self/gid_map", "1000 " + group + " 1");
  if (sethostname("sandbox", 7) != 0) fail("sethostname");
  const Status view = enter_file_view(plan.read_only, plan.writable);
  if (!view.ok()) fail(view.message(), 0);
}

void drop_capabilities() {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // fails for a plain user, who has none to drop
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0) fail("dropping capabilities");
}

// A child whose parent is our starter: it can wait for it, and PTRACE_TRACEME makes it the tracer.
int fork_sibling() {
  return static_cast<int>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

// The first process of the pid namespace: collects orphans, and its death is the death of all in there.
[[noreturn]] void be_init() {
  setsid();
  signal(SIGCHLD, SIG_IGN);
  drop_capabilities();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  syscall(SYS_close_range, 0u, ~0u, 0u);
  for (;;) pause();
}

void limit(decltype(RLIMIT_AS) resource, int64_t value, const char* name) {
  if (value <= 0) return;
  const auto most = static_cast<rlim_t>(value);
  const rlimit bound = {most, most};
  if (setrlimit(resource, &bound) != 0) fail(name);
}

void set_limits(const LaunchPlan& plan) {
  const rlimit no_core = {0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) fail("RLIMIT_CORE");
  limit(RLIMIT_FSIZE, plan.file_bytes, "RLIMIT_FSIZE");
  limit(RLIMIT_CPU, plan.cpu_seconds, "RLIMIT_CPU");
  limit(RLIMIT_NPROC, plan.processes, "RLIMIT_NPROC");
  limit(RLIMIT_AS, plan.memory_bytes, "RLIMIT_AS");
}

void set_cores(const LaunchPlan& plan) {
  if (plan.cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : plan.cores)
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

// Leaves exactly the plan's descriptors, with /dev/null where 0, 1 or 2 is not among them.
void arrange_descriptors(const LaunchPlan& plan) {
  std::vector<int> high;
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    high.push_back(fcntl(kFirstInheritedDescriptor + static_cast<int>(i), F_DUPFD_CLOEXEC, kHighestTarget));
    if (high.back() < 0) fail("duplicating a descriptor");
  }
  const int report = fcntl(report_descriptor, F_DUPFD_CLOEXEC, kHighestTarget);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int high_null = fcntl(null, F_DUPFD_CLOEXEC, kHighestTarget);
  if (report < 0 || high_null < 0) fail("duplicating a descriptor");
  report_descriptor = report;
  syscall(SYS_close_range, 0u, static_cast<unsigned>(kHighestTarget - 1), 0u);
  for (int standard = 0; standard <= 2; ++standard)
    if (dup2(high_null, standard) < 0) fail("opening /dev/null");
  for (size_t i = 0; i < high.size(); ++i)
    if (dup2(high[i], plan.targets[i]) < 0) fail("placing a descriptor");
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void be_program(LaunchPlan plan) {
  if (setsid() < 0) fail("setsid");
  arrange_descriptors(plan);
  set_cores(plan);
  if (chdir(plan.writable.empty() ? "/" : plan.writable.c_str()) != 0) fail("entering " + plan.writable);
  std::vector<char*> argv = pointers(plan.argv), environment = pointers(plan.environment);
  drop_capabilities();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) fail("PR_SET_PDEATHSIG");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
  if (plan.trace_me && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) fail("PTRACE_TRACEME");
  set_limits(plan);
  const Status filter = install_system_call_filter(
      plan.compiler ? SystemCallFilter::kCompiler : SystemCallFilter::kCandidateLoad, !plan.namespaces);
  if (!filter.ok()) fail(filter.message(), 0);
  execve(argv[0], argv.data(), environment.data());
  fail("executing " + plan.argv[0]);
}

void restore_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < SIGRTMIN; ++number) signal(number, SIG_DFL);  // fails for KILL and STOP
}

int launch() {
  restore_signals();
  LaunchPlan plan = read_plan();
  if (plan.argv.empty()) fail("the plan has no program", EINVAL);
  LaunchReport report{LaunchReport::kProcesses, 0, 0, 0, {}};
  if (plan.namespaces) {
    enter_namespaces(plan);
    report.init = fork_sibling();
    if (report.init == 0) be_init();
    if (report.init < 0) fail("starting the first process");
  }
  report.program = fork_sibling();
  if (report.program == 0) be_program(std::move(plan));
  const int error = errno;
  if (report.program < 0 && report.init > 0) ::kill(report.init, SIGKILL);
  if (report.program < 0) fail("starting the program", error);
  return write(report_descriptor, &report, sizeof report) == sizeof report ? 0 : 1;
}

}  // namespace
}  // namespace fixit

int main() {
  return fixit::launch();
}

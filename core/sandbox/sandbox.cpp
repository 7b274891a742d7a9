#include "core/sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/clock.h"
#include "core/sandbox/launch_plan.h"

namespace fixit {
namespace {

constexpr int64_t kLaunchDeadlineMs = 20'000;  // set-up takes milliseconds; a loaded machine gets its time

Status failed(const std::string& what, int error = errno) {
  return Status(ErrorCode::kUnavailable, what + ": " + std::strerror(error));
}

ExitStatus from_wait_status(int status) {
  ExitStatus result;
  result.exited = WIFEXITED(status);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

// Reaps one child, whatever it was: an exit, or stops that come before it while it is traced.
int reap(int pid) {
  int status = 0;
  for (;;) {
    const int got = waitpid(pid, &status, __WALL);
    if (got == pid && !WIFSTOPPED(status)) return status;
    if (got < 0 && errno != EINTR) return 0;
  }
}

class Process : public SandboxedProcess {
 public:
  Process(int init, int program, UniqueFd pidfd, SandboxLevel level)
      : init_(init), program_(program), pidfd_(std::move(pidfd)), level_(level) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() override {
    kill();
    if (!ended_) reap_program();
    if (init_ > 0) reap(init_);
  }

  int pid() const override { return program_; }
  SandboxLevel level() const override { return level_; }
  int pidfd() const { return pidfd_.get(); }

  void kill() override {
    // The namespace's first process takes all others with it. Without one, the group holds all: the filter
    // forbids leaving it. After the program is reaped its number may be another's, so the group is only
    // signalled before; wait() does that, too.
    if (init_ > 0) ::kill(init_, SIGKILL);
    if (!ended_) {
      ::kill(-program_, SIGKILL);
      ::kill(program_, SIGKILL);
    }
  }

  Result<ExitStatus> wait(int64_t timeout_ms) override {
    if (!ended_) {
      const int64_t deadline = Clock::system().steady_ms() + timeout_ms;
      pollfd ready = {pidfd_.get(), POLLIN, 0};
      for (;;) {
        const int64_t left = deadline - Clock::system().steady_ms();
        const int got =
            poll(&ready, 1, static_cast<int>(std::max<int64_t>(0, std::min<int64_t>(left, 1 << 30))));
        if (got > 0) break;
        if (got < 0 && errno != EINTR) return failed("waiting for a sandboxed process");
        if (left <= 0) return Status(ErrorCode::kTimeout, "the sandboxed process still runs");
      }
      reap_program();
    }
    return *ended_;
  }

 private:
  // Its children may live on; in a group they are killed while the leader's number is still taken.
  void reap_program() {
    if (init_ <= 0) ::kill(-program_, SIGKILL);
    // Threads of a traced program are children of their own, in its process group, and must be reaped before
    // it.
    int status = 0;
    for (;;) {
      int one = 0;
      const int got = waitpid(-program_, &one, __WALL);
      if (got == program_ && !WIFSTOPPED(one)) status = one;
      if (got < 0 && errno != EINTR) break;
    }
    ended_ = from_wait_status(status);
  }

  int init_;
  int program_;
  UniqueFd pidfd_;
  SandboxLevel level_;
  std::optional<ExitStatus> ended_;
};

Result<UniqueFd> plan_file(const LaunchPlan& plan) {
  const std::string bytes = encode(plan);
  UniqueFd file(memfd_create("launch-plan", MFD_CLOEXEC));
  if (!file || write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return failed("writing the launch plan");
  return file;
}

Result<LaunchPlan> make_plan(const SandboxSpec& spec, SandboxLevel level) {
  if (spec.argv.empty() || spec.argv[0].empty() || spec.argv[0][0] != '/')
    return Status(ErrorCode::kInvalid, "sandbox: argv[0] must be an absolute path");
  LaunchPlan plan;
  plan.argv = spec.argv;
  for (const auto& [name, value] : spec.environment) plan.environment.push_back(name + "=" + value);
  if (spec.compiler && !spec.writable.empty() && spec.environment.count("TMPDIR") == 0)
    plan.environment.push_back("TMPDIR=" + spec.writable.string());
  for (const auto& path : spec.read_only) plan.read_only.push_back(path.string());
  plan.writable = spec.writable.string();
  for (const auto& [ours, theirs] : spec.descriptors) {
    if (theirs < 0 || theirs >= kHighestTarget || ours < 0)
      return Status(ErrorCode::kInvalid, "sandbox: descriptor pair " + std::to_string(ours) + ", " +
                                             std::to_string(theirs) + " is out of range");
    plan.targets.push_back(theirs);
  }
  plan.memory_bytes = spec.memory_bytes;
  plan.file_bytes = spec.file_bytes;
  plan.processes = spec.processes;
  plan.cpu_seconds = spec.cpu_seconds;
  plan.cores = spec.cores;
  plan.trace_me = spec.trace_me;
  plan.compiler = spec.compiler;
  plan.namespaces = level == SandboxLevel::kNamespacesSeccomp;
  return plan;
}

// Runs fixit-sandbox-exec with `inherited` at 3, 4, 5, ... and nothing else open.
Result<int> spawn_launcher(const std::filesystem::path& launcher, const std::vector<int>& inherited) {
  // First above all targets, so that no target overwrites a source that is still to come.
  const int above = kPlanDescriptor + static_cast<int>(inherited.size());
  std::vector<UniqueFd> sources;
  for (const int descriptor : inherited) {
    sources.emplace_back(fcntl(descriptor, F_DUPFD_CLOEXEC, above));
    if (!sources.back()) return failed("duplicating descriptor " + std::to_string(descriptor));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = 0;
  for (int standard = 0; standard <= 2 && error == 0; ++standard)
    error = posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  for (size_t i = 0; i < sources.size() && error == 0; ++i)
    error =
        posix_spawn_file_actions_adddup2(&actions, sources[i].get(), kPlanDescriptor + static_cast<int>(i));
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, above);
  int pid = -1;
  char name[] = "fixit-sandbox-exec";
  char* argv[] = {name, nullptr};
  char* environment[] = {nullptr};
  if (error == 0) error = posix_spawn(&pid, launcher.c_str(), &actions, nullptr, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failed("starting " + launcher.string(), error);
  return pid;
}

struct Launched {
  int init = 0;
  int program = 0;
  std::optional<Status> failure;
};

// Everything up to the end of the pipe: the program runs, or a failure says which step failed.
Launched read_reports(int pipe) {
  Launched launched;
  const int64_t deadline = Clock::system().steady_ms() + kLaunchDeadlineMs;
  for (;;) {
    pollfd ready = {pipe, POLLIN, 0};
    const int64_t left = deadline - Clock::system().steady_ms();
    const int got = left > 0 ? poll(&ready, 1, static_cast<int>(left)) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      launched.failure = Status(ErrorCode::kTimeout, "sandbox: the launcher did not finish");
      return launched;
    }
    LaunchReport report;
    const ssize_t size = read(pipe, &report, sizeof report);
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof report) break;
    if (report.kind == LaunchReport::kProcesses) {
      launched.init = report.init;
      launched.program = report.program;
    } else {
      report.step[sizeof report.step - 1] = '\0';
      std::string text = std::string("sandbox: ") + report.step;
      if (report.error != 0) text += std::string(": ") + std::strerror(report.error);
      launched.failure = Status(ErrorCode::kDenied, text);
    }
  }
  if (!launched.failure && launched.program <= 0)
    launched.failure = Status(ErrorCode::kInternal, "sandbox: the launcher ended without a word");
  return launched;
}

Result<std::unique_ptr<SandboxedProcess>> start_at(SandboxLevel level, const SandboxSpec& spec) {
  FIXIT_ASSIGN_OR_RETURN(const auto launcher, find_own_program("fixit-sandbox-exec"));
  FIXIT_ASSIGN_OR_RETURN(const LaunchPlan plan, make_plan(spec, level));
  FIXIT_ASSIGN_OR_RETURN(const UniqueFd plan_fd, plan_file(plan));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe2");
  UniqueFd report(ends[0]), report_writer(ends[1]);
  std::vector<int> inherited = {plan_fd.get(), report_writer.get()};
  for (const auto& [ours, theirs] : spec.descriptors) inherited.push_back(ours);
  FIXIT_ASSIGN_OR_RETURN(const int launcher_pid, spawn_launcher(launcher, inherited));
  report_writer = UniqueFd();
  const Launched launched = read_reports(report.get());
  if (launched.failure && launched.failure->code() == ErrorCode::kTimeout) ::kill(launcher_pid, SIGKILL);
  reap(launcher_pid);
  if (launched.program <= 0) return *launched.failure;
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, launched.program, 0)));
  const int error = errno;
  auto process = std::make_unique<Process>(launched.init, launched.program, std::move(pidfd), level);
  if (launched.failure) return *launched.failure;  // its end is collected by ~Process
  if (fcntl(process->pidfd(), F_GETFD) < 0) return failed("pidfd_open", error);
  return std::unique_ptr<SandboxedProcess>(std::move(process));
}

SandboxLevel probe() {
  const auto launcher = find_own_program("fixit-sandbox-exec");
  if (!launcher.ok()) return SandboxLevel::kSeccomp;
  // Executing a program is part of the trial; without a plan on descriptor 3 the launcher ends at once.
  SandboxSpec spec;
  spec.argv = {launcher->string()};
  spec.read_only = {*launcher, "/usr/lib", "/lib", "/lib64", "/etc/ld.so.cache"};
  const auto process = start_at(SandboxLevel::kNamespacesSeccomp, spec);
  if (!process.ok()) return SandboxLevel::kSeccomp;
  const auto status = (*process)->wait(kLaunchDeadlineMs);
  return status.ok() && status->exited ? SandboxLevel::kNamespacesSeccomp : SandboxLevel::kSeccomp;
}

}  // namespace

Result<std::filesystem::path> find_own_program(std::string_view name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Status(ErrorCode::kNotFound, "/proc/self/exe: " + error.message());
  const auto folder = self.parent_path();
  for (const auto& path : {folder / name, folder.parent_path() / "bin" / name})
    if (access(path.c_str(), X_OK) == 0) return path.lexically_normal();
  return Status(ErrorCode::kNotFound, std::string(name) + " is neither in " + folder.string() + " nor in " +
                                          (folder.parent_path() / "bin").string() +
                                          "; build or install it beside this program");
}

SandboxLevel available_sandbox_level() {
  const char* wanted = std::getenv("FIXIT_SANDBOX");
  if (wanted != nullptr && std::string_view(wanted) == name_of(SandboxLevel::kSeccomp))
    return SandboxLevel::kSeccomp;
  static const SandboxLevel level = probe();
  return level;
}

Result<std::unique_ptr<SandboxedProcess>> SandboxedProcess::start(const SandboxSpec& spec) {
  return start_at(available_sandbox_level(), spec);
}

}  // namespace fixit

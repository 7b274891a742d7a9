// What a sandboxed program can and cannot do, at both levels.
#include "core/sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

namespace fixit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// Each argument is one thing to try; what happened goes to stdout.
constexpr const char* kProbe = R"(
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>
#include <dirent.h>
#include <sched.h>
int main(int argc, char** argv) {
  setvbuf(stdout, 0, _IONBF, 0);
  const char* what = argv[1];
  if (!strcmp(what, "socket")) printf("%s\n", socket(AF_INET, SOCK_STREAM, 0) < 0 ? strerror(errno) : "made");
  if (!strcmp(what, "ptrace")) printf("%s\n", ptrace(PTRACE_ATTACH, atoi(argv[2]), 0, 0) < 0 ? strerror(errno) : "attached");
  if (!strcmp(what, "kill")) printf("%s\n", kill(atoi(argv[2]), SIGKILL) < 0 ? strerror(errno) : "signalled");
  if (!strcmp(what, "unshare")) printf("%s\n", unshare(CLONE_NEWUSER) < 0 ? strerror(errno) : "unshared");
  if (!strcmp(what, "read")) { int f = open(argv[2], O_RDONLY); printf("%s\n", f < 0 ? strerror(errno) : "opened"); }
  if (!strcmp(what, "write")) { int f = open(argv[2], O_CREAT | O_WRONLY, 0666); printf("%s\n", f < 0 ? strerror(errno) : "opened"); }
  if (!strcmp(what, "cwd")) { char p[4096]; printf("%s\n", getcwd(p, sizeof p)); }
  if (!strcmp(what, "fds")) for (int i = 0; i < 1024; ++i) if (fcntl(i, F_GETFD) >= 0) printf("%d ", i);
  if (!strcmp(what, "env")) { extern char** environ; for (char** e = environ; *e; ++e) puts(*e); }
  if (!strcmp(what, "memory")) { void* p = malloc(1ul << 30); printf("%s\n", p ? "given" : "refused"); }
  if (!strcmp(what, "spin")) { puts("spinning"); for (volatile long i = 0;; ++i) {} }
  if (!strcmp(what, "fill")) { FILE* f = fopen("big", "w"); char b[4096] = {1}; for (int i = 0; i < 4096; ++i) fwrite(b, 1, sizeof b, f); fclose(f); puts("filled"); }
  if (!strcmp(what, "chatter")) for (int i = 0; i < 100000; ++i) printf("line %d\n", i);
  if (!strcmp(what, "children")) {
    for (int i = 0; i < 3; ++i) if (fork() == 0) { setsid(); if (fork() == 0) {} for (;;) sleep(1000); }
    printf("started\n"); if (argv[2]) return 0; for (;;) sleep(1000);
  }
  return 5;
}
)";

// Processes of this machine whose command line holds `text`.
std::set<int> processes_with(const std::string& text) {
  std::set<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.find(text) != std::string::npos) found.insert(std::stoi(name));
  }
  return found;
}

size_t own_descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

SandboxSpec compiler_spec(const fs::path& folder) {
  SandboxSpec spec;
  spec.read_only = {"/usr", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"};
  spec.writable = folder;
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.compiler = true;
  return spec;
}

class Sandbox : public ::testing::TestWithParam<SandboxLevel> {
 protected:
  void SetUp() override {
    unsetenv("FIXIT_SANDBOX");
    if (GetParam() == SandboxLevel::kSeccomp) setenv("FIXIT_SANDBOX", "seccomp", 1);
    if (available_sandbox_level() != GetParam()) GTEST_SKIP() << "this machine permits no namespaces";
    char pattern[] = "/tmp/fixit-sandbox-XXXXXX";
    folder_ = mkdtemp(pattern);
    std::ofstream(folder_ / "probe.c") << kProbe;
    SandboxSpec spec = compiler_spec(folder_);
    spec.argv = {"/usr/bin/gcc", "-O1", "-w", "-D_GNU_SOURCE", "-o", "probe", "probe.c"};
    const auto status = run_sandboxed(spec, 60'000, 10'000);
    ASSERT_TRUE(status.ok()) << status.status().to_string();
    ASSERT_TRUE(status->exited && status->code == 0) << status->output;
  }
  void TearDown() override {
    unsetenv("FIXIT_SANDBOX");
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  SandboxSpec probe_spec(std::vector<std::string> what) {
    SandboxSpec spec = compiler_spec(folder_);
    spec.argv = {(folder_ / "probe").string()};
    spec.argv.insert(spec.argv.end(), what.begin(), what.end());
    return spec;
  }
  ExitStatus run(const SandboxSpec& spec, int64_t deadline_ms = 20'000, size_t limit = 100'000) {
    auto status = run_sandboxed(spec, deadline_ms, limit);
    EXPECT_TRUE(status.ok()) << status.status().to_string();
    return status.ok() ? *status : ExitStatus();
  }
  bool isolated() const { return GetParam() == SandboxLevel::kNamespacesSeccomp; }

  fs::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Levels, Sandbox,
                         ::testing::Values(SandboxLevel::kSeccomp, SandboxLevel::kNamespacesSeccomp),
                         [](const auto& level) {
                           return level.param == SandboxLevel::kSeccomp ? "seccomp" : "namespaces";
                         });

TEST_P(Sandbox, ReportsTheExitCodeAndTheOutput) {
  const ExitStatus status = run(probe_spec({"cwd"}));
  EXPECT_TRUE(status.exited);
  EXPECT_EQ(status.code, 5);
  EXPECT_EQ(status.output, folder_.string() + "\n");
}

TEST_P(Sandbox, HasNoNetwork) {
  EXPECT_EQ(run(probe_spec({"socket"})).output, "Operation not permitted\n");
}

TEST_P(Sandbox, CannotReachOtherProcesses) {
  const int other = fork();
  if (other == 0)
    for (;;) pause();
  EXPECT_EQ(run(probe_spec({"ptrace", std::to_string(other)})).output, "Operation not permitted\n");
  EXPECT_EQ(run(probe_spec({"unshare"})).output, "Operation not permitted\n");
  if (isolated()) {
    EXPECT_EQ(run(probe_spec({"kill", std::to_string(other)})).output, "No such process\n");
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST_P(Sandbox, WritesOnlyToItsFolder) {
  EXPECT_EQ(run(probe_spec({"write", "inside"})).output, "opened\n");
  EXPECT_TRUE(fs::exists(folder_ / "inside"));
  if (!isolated()) return;
  EXPECT_EQ(run(probe_spec({"write", "/usr/fixit-outside"})).output, "Read-only file system\n");
  EXPECT_EQ(run(probe_spec({"write", "/fixit-outside"})).output, "Read-only file system\n");
  EXPECT_EQ(run(probe_spec({"write", "/dev/shm/fixit-outside"})).output, "No such file or directory\n");
}

TEST_P(Sandbox, SeesOnlyWhatItWasGiven) {
  if (!isolated()) GTEST_SKIP() << "needs a view of its own";
  EXPECT_EQ(run(probe_spec({"read", "/etc/passwd"})).output, "No such file or directory\n");
  EXPECT_EQ(run(probe_spec({"read", "/proc/1/environ"})).output, "No such file or directory\n");
  EXPECT_EQ(run(probe_spec({"read", "/dev/null"})).output, "opened\n");
  EXPECT_EQ(run(probe_spec({"read", "/usr/include/stdio.h"})).output, "opened\n");
}

TEST_P(Sandbox, InheritsNoDescriptorsAndNoEnvironment) {
  const int open_file = open("/etc/passwd", O_RDONLY);  // without O_CLOEXEC on purpose
  setenv("FIXIT_TEST_SECRET", "do-not-leak", 1);
  EXPECT_EQ(run(probe_spec({"fds"})).output, "0 1 2 ");
  SandboxSpec spec = probe_spec({"fds"});
  spec.descriptors = {{open_file, 7}, {open_file, 3}};
  EXPECT_EQ(run(spec).output, "0 1 2 3 7 ");
  EXPECT_THAT(run(probe_spec({"env"})).output, ::testing::Not(HasSubstr("do-not-leak")));
  close(open_file);
}

TEST_P(Sandbox, LimitsMemory) {
  SandboxSpec spec = probe_spec({"memory"});
  EXPECT_EQ(run(spec).output, "given\n");
  spec.memory_bytes = 256 << 20;
  EXPECT_EQ(run(spec).output, "refused\n");
}

TEST_P(Sandbox, LimitsCpuTime) {
  SandboxSpec spec = probe_spec({"spin"});
  spec.cpu_seconds = 1;
  const ExitStatus status = run(spec);
  EXPECT_FALSE(status.timed_out);
  EXPECT_TRUE(status.signal == SIGKILL || status.signal == SIGXCPU) << status.signal;
}

TEST_P(Sandbox, LimitsFileSizes) {
  SandboxSpec spec = probe_spec({"fill"});
  spec.file_bytes = 1 << 20;
  EXPECT_EQ(run(spec).signal, SIGXFSZ);
  EXPECT_LE(fs::file_size(folder_ / "big"), 1u << 20);
}

TEST_P(Sandbox, EndsAtItsDeadlineAndKeepsTheOutputSoFar) {
  const auto before = std::chrono::steady_clock::now();
  const ExitStatus status = run(probe_spec({"spin"}), 300);
  EXPECT_TRUE(status.timed_out);
  EXPECT_EQ(status.output, "spinning\n");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
}

TEST_P(Sandbox, KeepsHeadAndTailOfALongOutput) {
  const ExitStatus status = run(probe_spec({"chatter"}), 20'000, 1000);
  EXPECT_TRUE(status.output_truncated);
  EXPECT_LT(status.output.size(), 1100u);
  EXPECT_EQ(status.output.rfind("line 0\n", 0), 0u);
  EXPECT_THAT(status.output, HasSubstr("line 99999\n"));
  EXPECT_THAT(status.output, HasSubstr("bytes left out"));
}

TEST_P(Sandbox, LeavesNothingBehindWhenKilledOrWhenItsProgramEndsFirst) {
  const size_t descriptors = own_descriptors();
  EXPECT_TRUE(run(probe_spec({"children"}), 300).timed_out);
  EXPECT_EQ(run(probe_spec({"children", "and-leave"})).code, 0);
  {
    auto process = SandboxedProcess::start(probe_spec({"children"}));
    ASSERT_TRUE(process.ok());
    EXPECT_EQ((*process)->wait(50).status().code(), ErrorCode::kTimeout);
    EXPECT_FALSE(processes_with(folder_.string()).empty());
  }
  // Killed orphans are reaped by this machine's first process: that may take a moment.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!processes_with(folder_.string()).empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(processes_with(folder_.string()), std::set<int>());
  EXPECT_EQ(own_descriptors(), descriptors);
}

TEST_P(Sandbox, SaysWhatCouldNotBeStarted) {
  SandboxSpec spec = probe_spec({});
  spec.argv = {"/nowhere/program"};
  const auto status = run_sandboxed(spec, 1000, 1000);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.status().message(), HasSubstr("executing /nowhere/program: No such file"));
}

TEST_P(Sandbox, CandidatesFilterEndsForbiddenCallsWithSigsys) {
  SandboxSpec spec = probe_spec({"socket"});
  spec.compiler = false;
  spec.read_only.push_back(folder_);
  const ExitStatus status = run(spec);
  EXPECT_FALSE(status.exited);
  EXPECT_EQ(status.signal, SIGSYS);
}

}  // namespace
}  // namespace fixit

#include "core/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/file.h"

namespace fixit {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kPollInterval{20};

struct Launch {  // everything the forked child needs, made before the fork
  std::vector<char*> words;
  std::vector<char*> environment;
  std::string log;
  pid_t parent = 0;
  int report = -1;
};

// Runs in the forked child: only async-signal-safe calls. Writes errno to `report` if the program cannot run.
[[noreturn]] void become(const Launch& launch) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Away from the terminal's process group: Ctrl-C is for the parent, which then stops its children in order.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  bool ready = true;
  if (!launch.log.empty()) {
    const int log = open(launch.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ready = log >= 0 && dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0;
  }
  if (ready && getppid() == launch.parent)
    execvpe(launch.words[0], launch.words.data(), launch.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(launch.report, &error, sizeof error);
  _exit(127);
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::spawn(Options options) {
  std::unique_ptr<ChildProcess> process(new ChildProcess);
  process->options_ = std::move(options);
  process->keeper_ = std::thread(&ChildProcess::keep, process.get());
  std::unique_lock lock(process->mutex_);
  process->changed_.wait(lock, [&] { return process->started_; });
  if (process->exec_error_ != 0)
    return Status(ErrorCode::kNotFound, fmt::format("cannot run {}: {}; install it or put it into PATH",
                                                    process->options_.words[0], std::strerror(process->exec_error_)));
  return process;
}

void ChildProcess::keep() {
  std::vector<std::string> environment = merged_environment(options_.environment);
  Launch launch{pointers_to(options_.words), pointers_to(environment), options_.log.string(), getpid(), -1};

  int ends[2] = {-1, -1};
  int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  launch.report = writer.get();
  const pid_t child = error == 0 ? fork() : -1;
  if (child == 0) become(launch);
  if (child < 0 && error == 0) error = errno;
  writer = UniqueFd();
  // The pipe closes when the program runs; before that it carries the error of not running.
  if (child > 0 && read(reader.get(), &error, sizeof error) != sizeof error) error = 0;
  pid_ = child > 0 ? child : 0;
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
    exec_error_ = error;
  }
  changed_.notify_all();
  if (child > 0) wait_for_end();
}

void ChildProcess::wait_for_end() {
  bool told = false;
  Steady::time_point kill_at;
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno == ECHILD)) {
      const std::lock_guard lock(mutex_);
      wait_status_ = status;
      break;
    }
    if (stop_ && !told) {
      kill(pid_, SIGTERM);
      kill(pid_, SIGCONT);  // a stopped process could not act on it
      kill_at = Steady::now() + milliseconds(options_.grace_ms);
      told = true;
    }
    if (told && Steady::now() >= kill_at) kill(pid_, SIGKILL);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPollInterval);
  }
  exited_ = true;
}

std::string ChildProcess::ending() const {
  if (!exited_) return "";
  const std::lock_guard lock(mutex_);
  if (WIFSIGNALED(wait_status_)) return fmt::format("signal {}", WTERMSIG(wait_status_));
  return fmt::format("exit code {}", WEXITSTATUS(wait_status_));
}

void ChildProcess::tell_to_stop() {
  stop_ = true;
  changed_.notify_all();
}

void ChildProcess::stop() {
  tell_to_stop();
  if (keeper_.joinable()) keeper_.join();
}

ChildProcess::~ChildProcess() { stop(); }

std::filesystem::path own_program_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path(".") : program.parent_path();
}

}  // namespace fixit

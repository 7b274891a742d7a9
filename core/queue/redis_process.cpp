#include "core/queue/redis_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/file.h"
#include "fmt/format.h"

namespace fixit {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kKillAfter{5000};
constexpr milliseconds kPollInterval{20};

// Runs in the forked child: only async-signal-safe calls. Writes errno to `report` if the program cannot run.
[[noreturn]] void become(char* const* words, pid_t parent, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Away from the terminal's process group: Ctrl-C is for the program, which still needs its Redis to drain.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execvp(words[0], words);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

Result<int> free_loopback_port() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket_fd || bind(socket_fd.get(), generic, size) != 0 ||
      getsockname(socket_fd.get(), generic, &size) != 0)
    return Status(ErrorCode::kInternal, fmt::format("no free loopback port: {}", std::strerror(errno)));
  return static_cast<int>(ntohs(address.sin_port));
}

Result<std::unique_ptr<RedisProcess>> RedisProcess::spawn(std::vector<std::string> words) {
  const std::string program = words[0];
  std::unique_ptr<RedisProcess> process(new RedisProcess);
  process->keeper_ = std::thread(&RedisProcess::keep, process.get(), std::move(words));
  std::unique_lock lock(process->mutex_);
  process->changed_.wait(lock, [&] { return process->started_; });
  if (process->exec_error_ != 0)
    return Status(ErrorCode::kNotFound, fmt::format("cannot run {}: {}; install it or put it into PATH",
                                                    program, std::strerror(process->exec_error_)));
  return process;
}

void RedisProcess::keep(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  int ends[2] = {-1, -1};
  int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = error == 0 ? fork() : -1;
  if (child == 0) become(pointers.data(), parent, writer.get());
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

void RedisProcess::wait_for_end() {
  bool told = false;
  Steady::time_point kill_at;
  while (true) {
    const pid_t ended = waitpid(pid_, nullptr, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno == ECHILD)) break;
    if (stop_ && !told) {
      kill(pid_, SIGTERM);
      kill_at = Steady::now() + kKillAfter;
      told = true;
    }
    if (told && Steady::now() >= kill_at) kill(pid_, SIGKILL);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPollInterval);
  }
  exited_ = true;
}

RedisProcess::~RedisProcess() {
  stop_ = true;
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

}  // namespace fixit

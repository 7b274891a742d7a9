#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/clock.h"
#include "core/sandbox/sandbox.h"

namespace fixit {
namespace {

// Keeps the first and the last half of what is added: errors begin with their cause and end with their count.
class BoundedOutput {
 public:
  explicit BoundedOutput(size_t limit) : head_limit_(limit - limit / 2), tail_limit_(limit / 2) {}

  void add(std::string_view bytes) {
    const size_t to_head = std::min(bytes.size(), head_limit_ - head_.size());
    head_ += bytes.substr(0, to_head);
    bytes.remove_prefix(to_head);
    tail_ += bytes;
    if (tail_.size() > 2 * tail_limit_ + 4096) shorten();
  }
  void move_into(ExitStatus& status) {
    shorten();
    status.output_truncated = dropped_ > 0;
    status.output = std::move(head_);
    if (dropped_ > 0) status.output += "\n[... " + std::to_string(dropped_) + " bytes left out ...]\n";
    status.output += tail_;
  }

 private:
  void shorten() {
    if (tail_.size() <= tail_limit_) return;
    const size_t excess = tail_.size() - tail_limit_;
    dropped_ += excess;
    tail_.erase(0, excess);
  }

  size_t head_limit_;
  size_t tail_limit_;
  size_t dropped_ = 0;
  std::string head_;
  std::string tail_;
};

// Reads what is there without blocking; false at the end of the pipe.
bool drain(int pipe, BoundedOutput& output) {
  char buffer[16384];
  // Bounded, so that a program that writes for ever cannot hold its watcher past the deadline.
  for (int round = 0; round < 64; ++round) {
    const ssize_t size = read(pipe, buffer, sizeof buffer);
    if (size > 0) output.add({buffer, static_cast<size_t>(size)});
    if (size == 0) return false;
    if (size < 0 && errno != EINTR) return errno == EAGAIN;
  }
  return true;
}

// True once the program has ended.
Result<bool> ended(SandboxedProcess& process) {
  const auto status = process.wait(0);
  if (status.ok()) return true;
  if (status.status().code() == ErrorCode::kTimeout) return false;
  return status.status();
}

}  // namespace

Result<ExitStatus> run_sandboxed(const SandboxSpec& spec, int64_t deadline_ms, size_t output_limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Status(ErrorCode::kUnavailable, std::string("pipe2: ") + strerror(errno));
  UniqueFd reader(ends[0]), writer(ends[1]);
  if (fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0)
    return Status(ErrorCode::kInternal, std::string("O_NONBLOCK: ") + strerror(errno));
  SandboxSpec with_output = spec;
  with_output.descriptors.emplace_back(writer.get(), 1);
  with_output.descriptors.emplace_back(writer.get(), 2);
  const int64_t deadline = Clock::system().steady_ms() + deadline_ms;
  FIXIT_ASSIGN_OR_RETURN(const auto process, SandboxedProcess::start(with_output));
  writer = UniqueFd();
  BoundedOutput output(output_limit);
  bool open = true;
  bool timed_out = false;
  for (;;) {
    FIXIT_ASSIGN_OR_RETURN(const bool over, ended(*process));
    if (over) break;
    const int64_t left = deadline - Clock::system().steady_ms();
    if (left <= 0) {
      timed_out = true;
      break;
    }
    // The end of the pipe is nearly always the end of the program; the 50 ms are for one that closed its
    // output.
    pollfd ready = {open ? reader.get() : -1, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, open ? 50 : 1)));
    if (open) open = drain(reader.get(), output);
  }
  process->kill();
  FIXIT_ASSIGN_OR_RETURN(ExitStatus status, process->wait(10'000));
  if (open) drain(reader.get(), output);
  status.timed_out = timed_out;
  output.move_into(status);
  return status;
}

}  // namespace fixit

// redis-server as a child process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace fixit {

// A port of 127.0.0.1 that was free a moment ago.
Result<int> free_loopback_port();

// Immovable: its keeper thread points to it. The child is told to stop when its parent *thread* ends
// (PR_SET_PDEATHSIG), so a thread that lives exactly as long as this object forks it and waits for it.
class RedisProcess {
 public:
  // `words[0]` is looked up in PATH. kNotFound if it cannot be run.
  static Result<std::unique_ptr<RedisProcess>> spawn(std::vector<std::string> words);
  // SIGTERM (Redis writes out its file and ends), then SIGKILL after 5 s.
  ~RedisProcess();
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  int pid() const { return pid_; }
  bool exited() const { return exited_; }

 private:
  RedisProcess() = default;
  void keep(std::vector<std::string> words);
  void wait_for_end();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;  // guarded by mutex_
  int exec_error_ = 0;    // guarded by mutex_
  std::atomic<int> pid_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> exited_{false};
  std::thread keeper_;
};

}  // namespace fixit

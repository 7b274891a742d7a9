// A program of ours (or redis-server) as a child process that cannot outlive its parent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace fixit {

// Immovable: its keeper thread points to it. The child is told to stop when its parent *thread* ends
// (PR_SET_PDEATHSIG), so a thread that lives exactly as long as this object forks it and waits for it.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> words;                  // words[0] is looked up in PATH unless it has a slash
    std::map<std::string, std::string> environment;  // added to the parent's
    std::filesystem::path log;                       // stdout and stderr are appended to it; empty: inherited
    int grace_ms = 5000;                             // between SIGTERM and SIGKILL in stop()
  };
  // kNotFound if the program cannot be run.
  static Result<std::unique_ptr<ChildProcess>> spawn(Options options);
  // stop().
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const { return pid_; }
  bool exited() const { return exited_; }
  // "exit code 1", "signal 9"; empty while it runs.
  std::string ending() const;
  // SIGTERM, then SIGKILL after the grace; returns when it has ended and been reaped. Idempotent.
  void stop();
  // SIGTERM only: several children can be told before any is waited for.
  void tell_to_stop();

 private:
  ChildProcess() = default;
  void keep();
  void wait_for_end();

  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;  // guarded by mutex_
  int exec_error_ = 0;    // guarded by mutex_
  int wait_status_ = 0;   // guarded by mutex_
  std::atomic<int> pid_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> exited_{false};
  std::thread keeper_;
};

// The folder that holds the running executable, where its sister programs lie.
std::filesystem::path own_program_folder();

}  // namespace fixit

// A thread that calls a function each period: the shape of every long-running part of the coordinator.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace fixit {

// Immovable: the thread refers to it.
class Ticker {
 public:
  // `tick` returns true to be called again at once. Called first when the thread starts.
  Ticker(std::chrono::milliseconds period, std::function<bool()> tick);
  ~Ticker();  // as stop()
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  void wake();  // thread-safe: the next call comes at once
  void stop();  // waits for a call in progress and joins; wake() does nothing afterwards

 private:
  void run();

  const std::chrono::milliseconds period_;
  const std::function<bool()> tick_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fixit

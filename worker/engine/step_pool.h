// Threads for work that blocks on store, Redis or disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fixit {

class StepPool {
 public:
  explicit StepPool(int threads);
  StepPool(const StepPool&) = delete;
  StepPool& operator=(const StepPool&) = delete;
  ~StepPool();  // finishes what was submitted
  void submit(std::function<void()> work);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
};

}  // namespace fixit

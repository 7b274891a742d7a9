// Threads that stay on the cores of the target, for the reference's timed runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace fixit {

// One thread per core, asleep between runs. Immovable: its threads hold its address. Not thread-safe.
class PinnedCrew {
 public:
  explicit PinnedCrew(std::vector<int> cores);
  ~PinnedCrew();
  PinnedCrew(const PinnedCrew&) = delete;
  PinnedCrew& operator=(const PinnedCrew&) = delete;

  int size() const { return static_cast<int>(cores_.size()); }
  // Calls work(part) for part 0..size()-1, each on its core, and returns the nanoseconds from the first
  // thread's start to the last one's end: what a caller on these cores would have waited, without the way
  // there and back.
  int64_t run(const std::function<void(int)>& work);

 private:
  void lead();
  void follow(int part);

  std::vector<int> cores_;
  const std::function<void(int)>* work_ = nullptr;
  int64_t elapsed_ns_ = 0;
  std::atomic<uint32_t> asked_{0};      // runs asked of part 0
  std::atomic<uint32_t> answered_{0};   // runs it has finished
  std::atomic<uint32_t> started_{0};    // runs that the other parts may begin
  std::atomic<uint32_t> remaining_{0};  // other parts still at work
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace fixit

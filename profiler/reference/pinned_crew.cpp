#include "profiler/reference/pinned_crew.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <utility>

namespace fixit {
namespace {

// Best effort: where the core is not ours to choose, the thread runs unpinned and the spread of the samples
// says so.
void pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
}

}  // namespace

PinnedCrew::PinnedCrew(std::vector<int> cores) : cores_(std::move(cores)) {
  if (cores_.empty()) cores_.push_back(0);
  for (int part = 1; part < size(); ++part) threads_.emplace_back([this, part] { follow(part); });
  threads_.emplace_back([this] { lead(); });
}

PinnedCrew::~PinnedCrew() {
  stopping_ = true;
  ++asked_;
  asked_.notify_all();
  ++started_;
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int64_t PinnedCrew::run(const std::function<void(int)>& work) {
  work_ = &work;
  const uint32_t before = answered_.load();
  ++asked_;
  asked_.notify_all();
  answered_.wait(before);
  return elapsed_ns_;
}

void PinnedCrew::lead() {
  pin_this_thread(cores_[0]);
  for (uint32_t seen = 0;; ++seen) {
    asked_.wait(seen);
    if (stopping_) return;
    const auto start = std::chrono::steady_clock::now();
    remaining_ = static_cast<uint32_t>(size() - 1);
    if (size() > 1) {
      ++started_;
      started_.notify_all();
    }
    (*work_)(0);
    for (uint32_t left = remaining_.load(); left != 0; left = remaining_.load()) remaining_.wait(left);
    elapsed_ns_ =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
            .count();
    ++answered_;
    answered_.notify_all();
  }
}

void PinnedCrew::follow(int part) {
  pin_this_thread(cores_[static_cast<size_t>(part)]);
  for (uint32_t seen = 0;; ++seen) {
    started_.wait(seen);
    if (stopping_) return;
    (*work_)(part);
    --remaining_;
    remaining_.notify_all();
  }
}

}  // namespace fixit

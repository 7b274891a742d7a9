// Claims jobs while there is room for them, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/queue/job_queue.h"

namespace fixit {

class Claimer {
 public:
  struct Options {
    std::string worker;
    std::chrono::milliseconds lease{15000};
    std::vector<std::string> models;  // patterns of config/name_matches; empty: all
    std::vector<std::string> gpus;    // likewise, of GPU kinds; lanes without a GPU are always served
    std::function<int()> room;        // how many more jobs can be taken now
    std::function<void(std::vector<ClaimedJob>)> on_claimed;  // on the claimer's thread
  };
  // `blocking` is the claimer's own, for waiting at doorbells.
  Claimer(Redis& redis, Redis& blocking, Options options);
  Claimer(const Claimer&) = delete;
  Claimer& operator=(const Claimer&) = delete;
  ~Claimer();  // within about a second

  void wake();  // there may be room again

 private:
  void serve();
  // Waits until woken or stopped; false once stopped.
  bool pause(std::chrono::milliseconds limit);
  bool stopping();
  std::vector<Lane> served_lanes();

  JobQueue queue_;
  Redis& blocking_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool woken_ = false;
  std::thread thread_;
};

}  // namespace fixit

// What a profiler has been given and not yet been thanked for: waiting and running requests, and verdicts
// that the broker has not acknowledged.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/wire/message.h"

namespace fixit {

// Thread-safe: the broker's client puts in, the evaluating thread takes out.
class RequestShelf {
 public:
  explicit RequestShelf(const Clock& clock) : clock_(clock) {}

  // A request that waits or runs already is not taken twice; false then, and for one whose verdict is still
  // here.
  bool put(ProfileRequest request);
  // The next request in order of arrival, waiting up to timeout_ms. One whose deadline has passed ends as
  // INFRA here and is not returned.
  std::optional<ProfileRequest> take(int64_t timeout_ms);
  // True while the taken request is to be given up.
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // Ends a waiting request as INFRA "cancelled"; asks a running one to end itself. Unknown keys are ignored.
  void cancel(const std::string& key, const std::string& reason);
  // Asks the running request to end itself.
  void give_up() { cancelled_ = true; }
  // The verdict on the request that was taken.
  void finish(Verdict verdict);
  void acknowledge(const std::string& key);
  // Gives up everything that waits, without verdicts: the broker hands it to others when the profiler leaves.
  void drop_waiting();

  // Keys of what waits or runs: what a reconnecting profiler still works on.
  std::vector<std::string> held() const;
  std::vector<VerdictReply> unacknowledged() const;
  // Waits until nothing is unacknowledged; false if that takes longer than timeout_ms.
  bool wait_acknowledged(int64_t timeout_ms);

 private:
  void end(const std::string& key, const char* check, std::string evidence);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ProfileRequest> waiting_;
  std::string running_;  // empty: none
  std::map<std::string, Verdict> finished_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace fixit

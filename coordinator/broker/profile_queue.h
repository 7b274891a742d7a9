// Who waits for which verdict, and which profiler works on it: the broker's rules without its sockets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "coordinator/broker/broker.h"
#include "coordinator/broker/verdict_cache.h"
#include "core/base/clock.h"
#include "core/wire/message.h"

namespace fixit {

// A peer that asked, and under which message id.
struct Waiter {
  std::string peer;
  std::string id;
  bool operator==(const Waiter&) const = default;
};

// What the queue makes happen. Calls back into the queue only later, never from within.
class ProfileActions {
 public:
  virtual ~ProfileActions() = default;
  // Ends with ProfileQueue::looked_up().
  virtual void look_up(const std::string& key, const std::vector<JudgeIdentity>& judges) = 0;
  // Ends with ProfileQueue::stored().
  virtual void store(const std::string& key, const JudgeIdentity& judge, const Verdict& verdict) = 0;
  // False if the profiler cannot be reached now.
  virtual bool dispatch(const std::string& profiler, const ProfileRequest& request) = 0;
  virtual void stop_work(const std::string& profiler, const std::string& key, const std::string& reason) = 0;
  virtual void acknowledge(const std::string& profiler, const std::string& key) = 0;
  virtual void answer(const Waiter& waiter, const std::string& key, const Verdict& verdict) = 0;
  virtual void refuse(const Waiter& waiter, const Status& status) = 0;
};

// Not thread-safe.
class ProfileQueue {
 public:
  struct Limits {
    int max_queue = 256;
    int max_profiler_deaths = 2;
  };
  ProfileQueue(Limits limits, const Clock& clock, ProfileActions& actions)
      : limits_(limits), clock_(clock), actions_(actions) {}

  // Joins an equal request in flight, or looks into the cache, then queues. The same waiter asking again
  // (after a reconnection) counts once.
  void ask(ProfileRequest request, const Waiter& waiter);
  // One of the peer's requests for this key is no longer wanted. The work is dropped when nobody wants it.
  void cancel(const std::string& peer, const std::string& key, const std::string& reason);
  void remove_waiters(const std::string& peer);
  void looked_up(const std::string& key, std::optional<Verdict> verdict);

  // A profiler (re)connects; `running` are the keys that it still works on.
  void add_profiler(const std::string& id, const ProfilerCapability& capability,
                    const std::vector<std::string>& running);
  // Its work goes to others. `death` says how it was lost, and counts against the request that it was working
  // on; empty for one that left on purpose.
  void remove_profiler(const std::string& id, const std::string& death);
  void grant(const std::string& profiler, int credits);
  void take_verdict(const std::string& profiler, VerdictReply reply);
  void stored(const std::string& key);

  void expire();                              // drops what has waited past its deadline
  void sample_busy_share(int64_t period_ms);  // called once in each period
  void fill(BrokerView& view, const std::map<std::string, Hello>& profilers) const;

 private:
  enum class State { kLooking, kQueued, kRunning, kStoring };
  using Place = std::tuple<int, uint64_t, std::string>;  // negated priority, sequence, key

  struct Work {
    ProfileRequest request;
    uint64_t sequence = 0;
    State state = State::kLooking;
    bool admitted = false;  // passed the bound of the queue once: going back into it cannot be refused
    std::string profiler;   // while running
    std::vector<Waiter> waiters;
    std::map<std::string, int> cancelled;  // peer -> how many of its waiters
    int deaths = 0;
    std::string evidence;
  };

  struct Profiler {
    ProfilerCapability capability;
    int limit = 0;                         // how many it may hold now, at most capability.credits
    bool unreachable = false;              // until it reconnects
    std::vector<std::string> outstanding;  // keys in the order of dispatch; it works on the first
    std::set<std::string> stopped;         // of those, told to stop
    double busy_share = 0;
  };

  struct Storing {
    Verdict verdict;
    std::vector<std::string> profilers;  // to acknowledge
  };

  Work* find(const std::string& key);
  void join(Work& work, const ProfileRequest& request, const Waiter& waiter);
  std::vector<JudgeIdentity> judges_of(const std::string& gpu) const;
  Place place_of(const Work& work) const { return {-work.request.priority, work.sequence, work.request.key}; }
  void look_up_or_enqueue(Work& work);
  void enqueue(const std::string& key);
  void dispatch(const std::string& gpu);
  Profiler* holder_of(const std::string& key, std::string& id);
  void leave_state(Work& work);
  void finish(const std::string& key, const Verdict& verdict);
  void refuse(const std::string& key, const Status& status);
  void drop_if_unwanted(const std::string& key, const std::string& reason);
  void blame(Work& work, const std::string& death);
  static Verdict infra(const std::string& key, const std::string& check, const std::string& evidence);

  const Limits limits_;
  const Clock& clock_;
  ProfileActions& actions_;
  uint64_t last_sequence_ = 0;
  std::map<std::string, Work> works_;                // by key
  std::map<std::string, std::set<Place>> queued_;    // by GPU kind
  std::map<std::string, Profiler> profilers_;        // by peer id
  std::map<std::string, JudgeIdentity> last_judge_;  // by GPU kind: answers from the cache while none lives
  std::map<std::string, Storing> storing_;           // by key
};

}  // namespace fixit

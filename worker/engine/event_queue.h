// The one queue that the engine's thread serves: events, and events that are due later.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "core/base/clock.h"

namespace fixit {

// Thread-safe. Events that are never taken are dropped with the queue.
class EventQueue {
 public:
  using Event = std::function<void()>;
  void post(Event event);
  void post_later(int64_t delay_ms, Event event);
  // Waits for the next event.
  Event take();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  std::multimap<int64_t, Event> later_;  // by steady_ms
};

}  // namespace fixit

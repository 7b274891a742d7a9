#include "worker/engine/event_queue.h"

namespace fixit {

void EventQueue::post(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_one();
}

void EventQueue::post_later(int64_t delay_ms, Event event) {
  const std::lock_guard lock(mutex_);
  later_.emplace(Clock::system().steady_ms() + delay_ms, std::move(event));
  changed_.notify_one();
}

EventQueue::Event EventQueue::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const int64_t now = Clock::system().steady_ms();
    while (!later_.empty() && later_.begin()->first <= now) {
      events_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (!events_.empty()) break;
    if (later_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(later_.begin()->first - now));
    }
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace fixit

#include "coordinator/collect/ticker.h"

namespace fixit {

Ticker::Ticker(std::chrono::milliseconds period, std::function<bool()> tick)
    : period_(period), tick_(std::move(tick)), thread_([this] { run(); }) {}

Ticker::~Ticker() {
  stop();
}

void Ticker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Ticker::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Ticker::run() {
  while (true) {
    const bool again = tick_();
    std::unique_lock lock(mutex_);
    if (!again) changed_.wait_for(lock, period_, [this] { return woken_ || stopping_; });
    woken_ = false;
    if (stopping_) return;
  }
}

}  // namespace fixit

#include "profiler/service/request_shelf.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace fixit {

bool RequestShelf::put(ProfileRequest request) {
  const std::lock_guard lock(mutex_);
  const bool waits =
      std::ranges::any_of(waiting_, [&](const auto& other) { return other.key == request.key; });
  if (waits || running_ == request.key || finished_.contains(request.key)) return false;
  waiting_.push_back(std::move(request));
  changed_.notify_all();
  return true;
}

std::optional<ProfileRequest> RequestShelf::take(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return !waiting_.empty(); });
  while (!waiting_.empty()) {
    ProfileRequest request = std::move(waiting_.front());
    waiting_.pop_front();
    const int64_t late_ms = clock_.unix_ms() - request.deadline_ms;
    if (request.deadline_ms > 0 && late_ms > 0) {
      end(request.key, "deadline passed", fmt::format("it was to begin {} ms ago", late_ms));
      continue;
    }
    running_ = request.key;
    cancelled_ = false;
    return request;
  }
  return std::nullopt;
}

void RequestShelf::end(const std::string& key, const char* check, std::string evidence) {
  Verdict& verdict = finished_[key];
  verdict.status = TurnStatus::kInfra;
  verdict.check = check;
  verdict.evidence = std::move(evidence);
  verdict.request_key = key;
}

void RequestShelf::cancel(const std::string& key, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (running_ == key) {
    cancelled_ = true;
    return;
  }
  const auto found = std::ranges::find_if(waiting_, [&](const auto& request) { return request.key == key; });
  if (found == waiting_.end()) return;
  waiting_.erase(found);
  end(key, "cancelled", reason);
}

void RequestShelf::finish(Verdict verdict) {
  const std::lock_guard lock(mutex_);
  finished_[running_] = std::move(verdict);
  running_.clear();
  changed_.notify_all();
}

void RequestShelf::acknowledge(const std::string& key) {
  const std::lock_guard lock(mutex_);
  finished_.erase(key);
  changed_.notify_all();
}

void RequestShelf::drop_waiting() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

std::vector<std::string> RequestShelf::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  if (!running_.empty()) keys.push_back(running_);
  for (const ProfileRequest& request : waiting_) keys.push_back(request.key);
  return keys;
}

std::vector<VerdictReply> RequestShelf::unacknowledged() const {
  const std::lock_guard lock(mutex_);
  std::vector<VerdictReply> replies;
  for (const auto& [key, verdict] : finished_) replies.push_back({key, verdict});
  return replies;
}

bool RequestShelf::wait_acknowledged(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return finished_.empty(); });
}

}  // namespace fixit

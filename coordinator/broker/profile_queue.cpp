#include "coordinator/broker/profile_queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace fixit {
namespace {

bool holds(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

constexpr double kBusyWindowMs = 30000;  // time constant of the busy share: about the last minute counts

}  // namespace

ProfileQueue::Work* ProfileQueue::find(const std::string& key) {
  const auto found = works_.find(key);
  return found == works_.end() ? nullptr : &found->second;
}

Verdict ProfileQueue::infra(const std::string& key, const std::string& check, const std::string& evidence) {
  Verdict verdict;
  verdict.status = TurnStatus::kInfra;
  verdict.check = check;
  verdict.evidence = evidence;
  verdict.request_key = key;
  return verdict;
}

std::vector<JudgeIdentity> ProfileQueue::judges_of(const std::string& gpu) const {
  std::set<JudgeIdentity> judges;
  for (const auto& [id, profiler] : profilers_)
    if (profiler.capability.gpu == gpu)
      judges.insert({profiler.capability.evaluator, profiler.capability.device});
  const auto last = last_judge_.find(gpu);
  if (judges.empty() && last != last_judge_.end()) judges.insert(last->second);
  return {judges.begin(), judges.end()};
}

void ProfileQueue::ask(ProfileRequest request, const Waiter& waiter) {
  const std::string key = request.key;
  if (Work* work = find(key)) return join(*work, request, waiter);
  Work& work = works_[key];
  work.request = std::move(request);
  work.sequence = ++last_sequence_;
  work.waiters.push_back(waiter);
  if (storing_.contains(key)) {
    work.state = State::kStoring;
    return;
  }
  look_up_or_enqueue(work);
}

// The work serves the most demanding of those who wait for it.
void ProfileQueue::join(Work& work, const ProfileRequest& request, const Waiter& waiter) {
  if (std::find(work.waiters.begin(), work.waiters.end(), waiter) == work.waiters.end())
    work.waiters.push_back(waiter);
  const bool queued = work.state == State::kQueued;
  if (queued) queued_[work.request.gpu].erase(place_of(work));
  work.request.priority = std::max(work.request.priority, request.priority);
  if (queued) queued_[work.request.gpu].insert(place_of(work));
  work.request.fresh |= request.fresh;
  const bool endless = work.request.deadline_ms <= 0 || request.deadline_ms <= 0;
  work.request.deadline_ms = endless ? 0 : std::max(work.request.deadline_ms, request.deadline_ms);
}

void ProfileQueue::look_up_or_enqueue(Work& work) {
  const auto judges = judges_of(work.request.gpu);
  work.state = State::kLooking;
  if (work.request.fresh || judges.empty()) return enqueue(work.request.key);
  actions_.look_up(work.request.key, judges);
}

void ProfileQueue::looked_up(const std::string& key, std::optional<Verdict> verdict) {
  Work* work = find(key);
  if (!work || work->state != State::kLooking) return;  // cancelled or judged meanwhile
  if (verdict && !work->request.fresh) return finish(key, *verdict);
  enqueue(key);
}

// The profiler that works on `key` already, though this broker may not have sent it there.
ProfileQueue::Profiler* ProfileQueue::holder_of(const std::string& key, std::string& id) {
  for (auto& [name, profiler] : profilers_)
    if (holds(profiler.outstanding, key) && !profiler.stopped.contains(key)) {
      id = name;
      return &profiler;
    }
  return nullptr;
}

void ProfileQueue::enqueue(const std::string& key) {
  Work& work = *find(key);
  if (holder_of(key, work.profiler)) {
    work.state = State::kRunning;
    work.admitted = true;
    return;
  }
  auto& queue = queued_[work.request.gpu];
  if (!work.admitted && static_cast<int>(queue.size()) >= limits_.max_queue)
    return refuse(key,
                  Status(ErrorCode::kFull, fmt::format("{} requests wait for GPU kind `{}`; try again later",
                                                       queue.size(), work.request.gpu)));
  work.state = State::kQueued;
  work.admitted = true;
  queue.insert(place_of(work));
  dispatch(work.request.gpu);
}

void ProfileQueue::dispatch(const std::string& gpu) {
  auto& queue = queued_[gpu];
  const int64_t now = clock_.unix_ms();
  for (auto next = queue.begin(); next != queue.end();) {
    Work& work = *find(std::get<2>(*next));
    const std::string& key = work.request.key;
    if (work.request.deadline_ms > 0 && work.request.deadline_ms <= now) {
      ++next;  // expire() ends it
      continue;
    }
    std::string chosen;
    size_t fewest = 0;
    bool any_room = false;
    for (auto& [id, profiler] : profilers_) {
      const size_t held = profiler.outstanding.size();
      if (profiler.capability.gpu != gpu || profiler.unreachable || static_cast<int>(held) >= profiler.limit)
        continue;
      any_room = true;
      // It may still be ending the same work that it was told to stop.
      if (holds(profiler.outstanding, key)) continue;
      if (chosen.empty() || held < fewest) chosen = id, fewest = held;
    }
    if (!any_room) return;
    if (chosen.empty()) {
      ++next;
      continue;
    }
    if (!actions_.dispatch(chosen, work.request)) {
      profilers_[chosen].unreachable = true;
      continue;
    }
    profilers_[chosen].outstanding.push_back(key);
    work.state = State::kRunning;
    work.profiler = chosen;
    next = queue.erase(next);
  }
}

// Takes work out of the queue or away from its profiler.
void ProfileQueue::leave_state(Work& work) {
  if (work.state == State::kQueued) queued_[work.request.gpu].erase(place_of(work));
  if (work.state == State::kRunning) work.profiler.clear();
}

void ProfileQueue::finish(const std::string& key, const Verdict& verdict) {
  auto node = works_.extract(key);
  if (node.empty()) return;
  leave_state(node.mapped());
  for (const auto& waiter : node.mapped().waiters) actions_.answer(waiter, key, verdict);
}

void ProfileQueue::refuse(const std::string& key, const Status& status) {
  auto node = works_.extract(key);
  if (node.empty()) return;
  leave_state(node.mapped());
  for (const auto& waiter : node.mapped().waiters) actions_.refuse(waiter, status);
}

void ProfileQueue::cancel(const std::string& peer, const std::string& key, const std::string& reason) {
  Work* work = find(key);
  if (!work) return;
  const auto asked = std::count_if(work->waiters.begin(), work->waiters.end(),
                                   [&](const Waiter& waiter) { return waiter.peer == peer; });
  // Which of a peer's equal requests is meant does not matter: all get the answer, if there is one.
  int& cancelled = work->cancelled[peer];
  cancelled = std::min(cancelled + 1, static_cast<int>(asked));
  drop_if_unwanted(key, reason);
}

void ProfileQueue::remove_waiters(const std::string& peer) {
  std::vector<std::string> touched;
  for (auto& [key, work] : works_) {
    work.cancelled.erase(peer);
    if (std::erase_if(work.waiters, [&](const Waiter& waiter) { return waiter.peer == peer; }) > 0)
      touched.push_back(key);
  }
  for (const auto& key : touched) {
    // Running work goes on: the peer may come back, and the verdict is worth keeping anyway.
    if (find(key)->state != State::kRunning) drop_if_unwanted(key, "nobody waits for it");
  }
}

void ProfileQueue::drop_if_unwanted(const std::string& key, const std::string& reason) {
  Work& work = *find(key);
  int cancelled = 0;
  for (const auto& [peer, count] : work.cancelled) cancelled += count;
  if (cancelled < static_cast<int>(work.waiters.size())) return;
  if (work.state == State::kRunning) {
    profilers_[work.profiler].stopped.insert(key);
    actions_.stop_work(work.profiler, key, reason);
  }
  refuse(key, Status(ErrorCode::kCancelled, "the request was cancelled: " + reason));
}

void ProfileQueue::expire() {
  const int64_t now = clock_.unix_ms();
  std::vector<std::string> expired;
  for (const auto& [gpu, queue] : queued_)
    for (const auto& [priority, sequence, key] : queue) {
      const int64_t deadline = find(key)->request.deadline_ms;
      if (deadline > 0 && deadline <= now) expired.push_back(key);
    }
  for (const auto& key : expired) {
    const Work& work = *find(key);
    const bool served = std::any_of(profilers_.begin(), profilers_.end(), [&](const auto& entry) {
      return entry.second.capability.gpu == work.request.gpu;
    });
    finish(key, infra(key, "deadline",
                      fmt::format("the deadline passed before a profiler of GPU kind `{}` was free{}",
                                  work.request.gpu, served ? "" : "; none is connected")));
  }
}

void ProfileQueue::sample_busy_share(int64_t period_ms) {
  const double weight = std::min(1.0, static_cast<double>(period_ms) / kBusyWindowMs);
  for (auto& [id, profiler] : profilers_)
    profiler.busy_share += weight * ((profiler.outstanding.empty() ? 0.0 : 1.0) - profiler.busy_share);
}

void ProfileQueue::fill(BrokerView& view, const std::map<std::string, Hello>& hellos) const {
  for (const auto& [id, profiler] : profilers_) {
    const auto hello = hellos.find(id);
    view.profilers.push_back({id, hello == hellos.end() ? std::string() : hello->second.host,
                              profiler.capability, static_cast<int>(profiler.outstanding.size()),
                              profiler.busy_share});
  }
  for (const auto& [gpu, queue] : queued_) view.queued[gpu] = static_cast<int>(queue.size());
}

}  // namespace fixit

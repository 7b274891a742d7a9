// The half of ProfileQueue that faces profilers.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "coordinator/broker/profile_queue.h"

namespace fixit {
namespace {

bool holds(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

void ProfileQueue::add_profiler(const std::string& id, const ProfilerCapability& capability,
                                const std::vector<std::string>& running) {
  const JudgeIdentity judge{capability.evaluator, capability.device};
  const auto known = judges_of(capability.gpu);
  Profiler& profiler = profilers_[id];
  const auto before = profiler.outstanding;
  profiler.capability = capability;
  profiler.limit = capability.credits;
  profiler.unreachable = false;
  last_judge_[capability.gpu] = judge;
  // Its own account of what it works on is the truth; what else was sent never reached it, or is finished and
  // will be offered again.
  profiler.outstanding.clear();
  for (const auto& key : before)
    if (holds(running, key)) profiler.outstanding.push_back(key);
  for (const auto& key : running)
    if (!holds(profiler.outstanding, key)) profiler.outstanding.push_back(key);
  std::erase_if(profiler.stopped, [&](const std::string& key) { return !holds(running, key); });
  for (const auto& key : running) {
    Work* work = find(key);
    if (!work || work->state != State::kQueued || profiler.stopped.contains(key)) continue;
    leave_state(*work);
    work->state = State::kRunning;
    work->profiler = id;
  }
  for (const auto& key : before) {
    Work* work = find(key);
    if (!work || work->state != State::kRunning || work->profiler != id || holds(running, key)) continue;
    leave_state(*work);
    work->state = State::kLooking;
    enqueue(key);
  }
  if (std::find(known.begin(), known.end(), judge) == known.end()) {
    // What waits may have been judged by this evaluator before.
    std::vector<std::string> waiting;
    for (const auto& [priority, sequence, key] : queued_[capability.gpu])
      if (!find(key)->request.fresh) waiting.push_back(key);
    for (const auto& key : waiting) {
      leave_state(*find(key));
      look_up_or_enqueue(*find(key));
    }
  }
  dispatch(capability.gpu);
}

void ProfileQueue::remove_profiler(const std::string& id, const std::string& death) {
  auto node = profilers_.extract(id);
  if (node.empty()) return;
  const Profiler& profiler = node.mapped();
  for (size_t i = 0; i < profiler.outstanding.size(); ++i) {
    const std::string& key = profiler.outstanding[i];
    Work* work = find(key);
    if (!work || work->state != State::kRunning || work->profiler != id) continue;
    leave_state(*work);
    work->state = State::kLooking;
    // Evaluations run one at a time, in order: only the first can have anything to do with the death.
    if (i == 0 && !death.empty()) blame(*work, death);
    if (work->deaths >= limits_.max_profiler_deaths)
      finish(key, infra(key, "profiler died", work->evidence));
    else
      enqueue(key);
  }
  dispatch(profiler.capability.gpu);
}

void ProfileQueue::blame(Work& work, const std::string& death) {
  work.deaths += 1;
  if (!work.evidence.empty()) work.evidence += "; ";
  work.evidence += death;
  spdlog::warn("broker: request {} of job {} lost its profiler ({} of {}): {}", work.request.key,
               work.request.job, work.deaths, limits_.max_profiler_deaths, death);
}

void ProfileQueue::grant(const std::string& id, int credits) {
  const auto found = profilers_.find(id);
  if (found == profilers_.end()) return;
  Profiler& profiler = found->second;
  const int held = static_cast<int>(profiler.outstanding.size());
  // No credit at all: it drains, and what it finishes is not replaced.
  profiler.limit = credits <= 0 ? 0 : std::min(profiler.capability.credits, held + std::min(credits, 1000));
  dispatch(profiler.capability.gpu);
}

void ProfileQueue::take_verdict(const std::string& id, VerdictReply reply) {
  const auto found = profilers_.find(id);
  if (found == profilers_.end()) return;
  Profiler& profiler = found->second;
  const std::string key = reply.key;
  std::erase(profiler.outstanding, key);
  profiler.stopped.erase(key);
  if (!consumes_turn(reply.verdict.status) && reply.verdict.status != TurnStatus::kInfra)
    reply.verdict =
        infra(key, "profiler protocol",
              fmt::format("profiler {} sent a verdict of status {}", id, name_of(reply.verdict.status)));
  reply.verdict.request_key = key;
  reply.verdict.cached = false;
  Work* work = find(key);
  if (is_cacheable(reply.verdict)) {
    if (work) {
      if (work->state == State::kRunning && work->profiler != id) {
        profilers_[work->profiler].stopped.insert(key);
        actions_.stop_work(work->profiler, key, "another profiler was faster");
      }
      leave_state(*work);
      work->state = State::kStoring;
    }
    const auto [storing, added] = storing_.try_emplace(key, Storing{reply.verdict, {}});
    if (!holds(storing->second.profilers, id)) storing->second.profilers.push_back(id);
    if (added)
      actions_.store(key, {profiler.capability.evaluator, profiler.capability.device}, reply.verdict);
  } else {
    // A fault of a profiler that has lost the request (it was told to stop) says nothing of where it is now.
    const bool its_own = work && work->state == State::kRunning && work->profiler == id;
    if (its_own || (work && work->state == State::kQueued && reply.verdict.status != TurnStatus::kInfra))
      finish(key, reply.verdict);
    actions_.acknowledge(id, key);
  }
  dispatch(profiler.capability.gpu);
}

void ProfileQueue::stored(const std::string& key) {
  auto node = storing_.extract(key);
  if (node.empty()) return;
  for (const auto& profiler : node.mapped().profilers) actions_.acknowledge(profiler, key);
  const Work* work = find(key);
  if (work && work->state == State::kStoring) finish(key, node.mapped().verdict);
}

}  // namespace fixit

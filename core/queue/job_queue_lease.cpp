// What a worker does with the jobs it holds: heartbeat, commit, finish, fail, release.
#include <algorithm>
#include <map>
#include <random>

#include "core/base/hash.h"
#include "core/queue/job_queue.h"
#include "core/queue/keys.h"
#include "core/queue/script.h"
#include "fmt/format.h"

namespace fixit {
namespace {

// Script calls for items of several lanes, and which item each answer belongs to.
struct Batches {
  std::vector<ScriptCall> calls;
  std::vector<std::vector<size_t>> items;  // per call
};

// Groups leases by lane into calls of bounded size. `arguments_of(i)` are item i's arguments.
template <typename LeaseOf, typename ArgumentsOf>
Batches make_batches(size_t count, const std::vector<std::string>& head, LeaseOf lease_of,
                     ArgumentsOf arguments_of) {
  Batches batches;
  struct Open {
    size_t call = 0;
    size_t bytes = 0;
  };
  std::map<Lane, Open> open;
  for (size_t i = 0; i < count; ++i) {
    const Lane& lane = lease_of(i).lane;
    auto found = open.find(lane);
    if (found == open.end() || batches.items[found->second.call].size() >= kBatchItems ||
        found->second.bytes >= kBatchBytes) {
      found = open.insert_or_assign(lane, Open{batches.calls.size(), 0}).first;
      batches.calls.push_back({keys::of_lane(lane), head});
      batches.items.emplace_back();
    }
    ScriptCall& call = batches.calls[found->second.call];
    for (std::string& argument : arguments_of(i)) {
      found->second.bytes += argument.size();
      call.arguments.push_back(std::move(argument));
    }
    batches.items[found->second.call].push_back(i);
  }
  return batches;
}

// One integer per item, in the items' order.
Result<std::vector<int64_t>> run_batches(Redis& redis, const Script& script, Batches batches, size_t count) {
  FIXIT_ASSIGN_OR_RETURN(const auto replies, run_scripts(redis, script, std::move(batches.calls)));
  std::vector<int64_t> answers(count);
  for (size_t call = 0; call < replies.size(); ++call) {
    const std::vector<size_t>& items = batches.items[call];
    if (replies[call].items.size() != items.size())
      return Status(ErrorCode::kInternal, "redis: a script's answer has an unknown form");
    for (size_t i = 0; i < items.size(); ++i) answers[items[i]] = replies[call].items[i].integer;
  }
  return answers;
}

void append_events(std::span<const JobEvent> events, std::vector<std::string>& arguments) {
  arguments.push_back(std::to_string(events.size()));
  for (const JobEvent& event : events) {
    arguments.emplace_back(name_of(event.kind));
    arguments.push_back(event.data);
  }
}

std::vector<std::string> commit_arguments(const Lease& lease, std::string_view progress,
                                          std::span<const JobEvent> events) {
  std::vector<std::string> arguments = {lease.job, lease.token, {}, std::string(progress)};
  append_events(events, arguments);
  std::string content;
  for (size_t i = 3; i < arguments.size(); ++i)
    content += fmt::format("{}:", arguments[i].size()) + arguments[i];
  arguments[2] = sha256(content).substr(0, 16);
  return arguments;
}

std::vector<std::string> finish_arguments(const Lease& lease, std::span<const JobEvent> events) {
  std::vector<std::string> arguments = {lease.job, lease.token};
  append_events(events, arguments);
  return arguments;
}

Status stale(const Lease& lease) {
  return Status(
      ErrorCode::kStale,
      fmt::format("job {}: this attempt no longer owns it (its lease ended, or it is done)", lease.job));
}

std::vector<bool> to_bools(const std::vector<int64_t>& answers) {
  return std::vector<bool>(answers.begin(), answers.end());
}

const Script& heartbeat_script() {
  static const Script script("heartbeat");
  return script;
}
const Script& commit_script() {
  static const Script script("commit");
  return script;
}
const Script& finish_script() {
  static const Script script("finish");
  return script;
}
const Script& fail_script() {
  static const Script script("fail");
  return script;
}
const Script& release_script() {
  static const Script script("release");
  return script;
}

double uniform_below_one() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

int limit_of(const RetryPolicy& retry, FailureKind kind) {
  switch (kind) {
    case FailureKind::kInfra:
      return retry.max_infra;
    case FailureKind::kProvider:
      return retry.max_provider;
    case FailureKind::kOutOfMemory:
      return retry.max_out_of_memory;
    case FailureKind::kCrash:
      return retry.max_crash;
  }
  return 0;
}

}  // namespace

Result<std::vector<LeaseState>> JobQueue::heartbeat(std::span<const Lease> leases,
                                                    std::chrono::milliseconds lease) {
  auto batches = make_batches(
      leases.size(), {std::to_string(lease.count())}, [&](size_t i) -> const Lease& { return leases[i]; },
      [&](size_t i) {
        return std::vector<std::string>{leases[i].job, leases[i].token};
      });
  FIXIT_ASSIGN_OR_RETURN(const auto answers,
                         run_batches(redis_, heartbeat_script(), std::move(batches), leases.size()));
  std::vector<LeaseState> states;
  for (const int64_t answer : answers)
    states.push_back(answer == 0   ? LeaseState::kKept
                     : answer == 2 ? LeaseState::kCancelled
                                   : LeaseState::kLost);
  return states;
}

Status JobQueue::commit(const Lease& lease, std::string_view progress, std::span<const JobEvent> events,
                        std::chrono::milliseconds lease_term) {
  ScriptCall call{keys::of_lane(lease.lane), {std::to_string(lease_term.count())}};
  for (std::string& argument : commit_arguments(lease, progress, events))
    call.arguments.push_back(std::move(argument));
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, run_script(redis_, commit_script(), std::move(call)));
  return reply.items.size() == 1 && reply.items[0].integer == 1 ? Status() : stale(lease);
}

Status JobQueue::finish(const Lease& lease, std::span<const JobEvent> events) {
  ScriptCall call{keys::of_lane(lease.lane), finish_arguments(lease, events)};
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, run_script(redis_, finish_script(), std::move(call)));
  return reply.items.size() == 1 && reply.items[0].integer == 1 ? Status() : stale(lease);
}

Result<std::vector<bool>> JobQueue::commit_all(std::span<const JobStep> steps,
                                               std::chrono::milliseconds lease_term) {
  auto batches = make_batches(
      steps.size(), {std::to_string(lease_term.count())},
      [&](size_t i) -> const Lease& { return steps[i].lease; },
      [&](size_t i) { return commit_arguments(steps[i].lease, steps[i].progress, steps[i].events); });
  FIXIT_ASSIGN_OR_RETURN(const auto answers,
                         run_batches(redis_, commit_script(), std::move(batches), steps.size()));
  return to_bools(answers);
}

Result<std::vector<bool>> JobQueue::finish_all(std::span<const JobStep> steps) {
  auto batches = make_batches(
      steps.size(), {}, [&](size_t i) -> const Lease& { return steps[i].lease; },
      [&](size_t i) { return finish_arguments(steps[i].lease, steps[i].events); });
  FIXIT_ASSIGN_OR_RETURN(const auto answers,
                         run_batches(redis_, finish_script(), std::move(batches), steps.size()));
  return to_bools(answers);
}

Result<JobQueue::FailResult> JobQueue::fail(const Lease& lease, FailureKind kind, std::string_view error,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const JobEvent& dead_event) {
  ScriptCall call{keys::of_lane(lease.lane),
                  {lease.job, lease.token, std::string(name_of(kind)), std::to_string(limit_of(retry_, kind)),
                   std::to_string(retry_.backoff_ms), std::to_string(retry_.max_backoff_ms),
                   fmt::format("{:.9f}", uniform_below_one()),
                   std::to_string(retry_after ? std::max<int64_t>(0, retry_after->count()) : -1),
                   std::string(error), std::string(name_of(dead_event.kind)), dead_event.data}};
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, run_script(redis_, fail_script(), std::move(call)));
  if (reply.integer < 0) return stale(lease);
  return reply.integer == 1 ? FailResult::kDead : FailResult::kRetry;
}

Status JobQueue::release(std::span<const Lease> leases) {
  auto batches = make_batches(
      leases.size(), {}, [&](size_t i) -> const Lease& { return leases[i]; },
      [&](size_t i) {
        return std::vector<std::string>{leases[i].job, leases[i].token};
      });
  return run_scripts(redis_, release_script(), std::move(batches.calls)).status();
}

}  // namespace fixit

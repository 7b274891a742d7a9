// Into the queue and out of it: enqueue, claim, wait.
#include "core/queue/job_queue.h"

#include <algorithm>

#include "core/base/hash.h"
#include "core/queue/keys.h"
#include "core/queue/script.h"
#include "fmt/format.h"

namespace fixit {
namespace {

// A script that claims a thousand jobs holds up everybody else for some milliseconds; this many, for two.
constexpr int kClaimBatch = 500;

const Script& enqueue_script() {
  static const Script script("enqueue");
  return script;
}
const Script& claim_script() {
  static const Script script("claim");
  return script;
}

Status check_lane(const Lane& lane) {
  FIXIT_ASSIGN_OR_RETURN(const Lane parsed, Lane::parse(lane.name()));
  if (parsed == lane) return {};
  return Status(ErrorCode::kInvalid, fmt::format("lane \"{}\": a GPU kind must not contain @", lane.name()));
}

constexpr size_t kClaimFields = 7;

Status append_claimed(const Lane& lane, const std::string& bits, RedisReply& reply,
                      std::vector<ClaimedJob>& jobs) {
  if (reply.items.size() % kClaimFields != 0)
    return Status(ErrorCode::kInternal, "redis: a claim's answer has an unknown form");
  for (size_t i = 0; i < reply.items.size(); i += kClaimFields) {
    RedisReply* field = &reply.items[i];
    ClaimedJob job;
    job.lease = {lane, std::move(field[0].text), fmt::format("{}.{}", bits, i / kClaimFields + 1)};
    job.sweep = std::move(field[1].text);
    job.payload = std::move(field[2].text);
    job.progress = std::move(field[3].text);
    job.crashes = static_cast<int>(field[4].integer);
    job.infra_failures = static_cast<int>(field[5].integer);
    job.provider_failures = static_cast<int>(field[6].integer);
    jobs.push_back(std::move(job));
  }
  return {};
}

}  // namespace

JobQueue::JobQueue(Redis& redis, RetryPolicy retry) : redis_(redis), retry_(retry) {}

Result<JobQueue::Enqueued> JobQueue::enqueue(const Lane& lane, const std::string& sweep, int priority,
                                             std::span<const NewJob> jobs) {
  FIXIT_RETURN_IF_ERROR(check_lane(lane));
  if (priority < 1 || priority > 9)
    return Status(ErrorCode::kInvalid,
                  fmt::format("priority {} of sweep {}: must be 1 to 9", priority, sweep));
  Enqueued total;
  if (jobs.empty()) return total;
  // Before the jobs: a lane that is listed and empty is harmless, the reverse would hide jobs.
  FIXIT_RETURN_IF_ERROR(redis_.call({"SADD", std::string(keys::kLanes), lane.name()}).status());

  const std::vector<std::string> lane_keys = keys::of_lane(lane);
  size_t next = 0;
  while (next < jobs.size()) {
    std::vector<ScriptCall> calls;
    constexpr size_t kCallsAtOnce = 16;
    while (next < jobs.size() && calls.size() < kCallsAtOnce) {
      ScriptCall call{lane_keys, {sweep, std::to_string(priority)}};
      size_t bytes = 0;
      for (size_t n = 0; next < jobs.size() && n < kBatchItems && bytes < kBatchBytes; ++n, ++next) {
        call.arguments.push_back(jobs[next].id);
        call.arguments.push_back(jobs[next].payload);
        bytes += jobs[next].payload.size();
      }
      calls.push_back(std::move(call));
    }
    FIXIT_ASSIGN_OR_RETURN(const auto replies, run_scripts(redis_, enqueue_script(), std::move(calls)));
    for (const RedisReply& reply : replies) total.added += reply.integer;
  }
  total.existing = static_cast<int64_t>(jobs.size()) - total.added;
  return total;
}

Result<std::vector<ClaimedJob>> JobQueue::claim(std::span<const Lane> lanes, int max,
                                                const std::string& worker, std::chrono::milliseconds lease) {
  std::vector<ClaimedJob> jobs;
  for (const Lane& lane : lanes) {
    while (static_cast<int>(jobs.size()) < max) {
      const int want = std::min(kClaimBatch, max - static_cast<int>(jobs.size()));
      const std::string bits = random_hex(16);
      auto reply = run_script(
          redis_, claim_script(),
          {keys::of_lane(lane), {std::to_string(want), bits, worker, std::to_string(lease.count())}});
      if (!reply.ok()) {
        // What is leased already must reach the caller, or it would lie idle until its lease ends.
        if (!jobs.empty()) return jobs;
        return reply.status();
      }
      const size_t before = jobs.size();
      FIXIT_RETURN_IF_ERROR(append_claimed(lane, bits, *reply, jobs));
      if (jobs.size() - before < static_cast<size_t>(want)) break;
    }
  }
  return jobs;
}

Status JobQueue::wait_for_work(Redis& blocking, std::span<const Lane> lanes,
                               std::chrono::milliseconds timeout) {
  Redis::Command command = {"BLPOP"};
  for (const Lane& lane : lanes) command.push_back(keys::bell(lane));
  command.emplace_back();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  // A blocking command that outlasts the connection's timeout would be taken for an outage, and Redis looks
  // at its timeouts ten times a second only.
  const int spare_ms = blocking.timeout_ms() - 200;
  const auto longest = std::chrono::milliseconds(std::max(1, std::min(blocking.timeout_ms() / 2, spare_ms)));
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || lanes.empty()) return {};
    command.back() = fmt::format("{:.3f}", static_cast<double>(std::min(left, longest).count()) / 1000.0);
    FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, blocking.call(command));
    if (!reply.is_nil()) return {};
  }
}

}  // namespace fixit

// What the coordinator does: reclaim, bury, extend, park, pause, forget.
#include <algorithm>
#include <charconv>

#include "core/queue/job_queue.h"
#include "core/queue/keys.h"
#include "core/queue/script.h"
#include "fmt/format.h"

namespace fixit {
namespace {

const Script& reclaim_script() {
  static const Script script("reclaim");
  return script;
}
const Script& reclaim_worker_script() {
  static const Script script("reclaim_worker");
  return script;
}
const Script& extend_script() {
  static const Script script("extend");
  return script;
}
const Script& bury_script() {
  static const Script script("bury");
  return script;
}
const Script& set_flag_script() {
  static const Script script("set_flag");
  return script;
}
const Script& set_parked_script() {
  static const Script script("set_parked");
  return script;
}
const Script& forget_script() {
  static const Script script("forget");
  return script;
}

JobQueue::Reclaimed to_reclaimed(const RedisReply& reply) {
  JobQueue::Reclaimed reclaimed;
  for (size_t i = 0; i < reply.items.size(); ++i) {
    if (i == 0)
      reclaimed.requeued = reply.items[i].integer;
    else
      reclaimed.dead.push_back(reply.items[i].text);
  }
  return reclaimed;
}

// Calls of `script` over ids, each with `head` before them.
std::vector<ScriptCall> calls_over(const Lane& lane, const std::vector<std::string>& head,
                                   std::span<const std::string> ids) {
  std::vector<ScriptCall> calls;
  for (size_t begin = 0; begin < ids.size(); begin += kBatchItems) {
    const auto batch = ids.subspan(begin, std::min(kBatchItems, ids.size() - begin));
    calls.push_back({keys::of_lane(lane), head});
    calls.back().arguments.insert(calls.back().arguments.end(), batch.begin(), batch.end());
  }
  return calls;
}

Result<std::vector<std::string>> leased_jobs(Redis& redis, const Lane& lane) {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis.call({"ZRANGE", keys::leased(lane), "0", "-1"}));
  std::vector<std::string> ids;
  for (const RedisReply& item : reply.items) ids.push_back(item.text);
  return ids;
}

// The stream id that follows `position` ("milliseconds-number").
Result<std::string> position_after(const std::string& position) {
  uint64_t milliseconds = 0;
  uint64_t number = 0;
  const char* end = position.data() + position.size();
  const auto first = std::from_chars(position.data(), end, milliseconds);
  const bool whole = first.ec == std::errc() && first.ptr == end;
  if (!whole) {
    if (first.ec != std::errc() || *first.ptr != '-')
      return Status(ErrorCode::kInvalid, fmt::format("\"{}\" is not a position in an event log", position));
    const auto second = std::from_chars(first.ptr + 1, end, number);
    if (second.ec != std::errc() || second.ptr != end)
      return Status(ErrorCode::kInvalid, fmt::format("\"{}\" is not a position in an event log", position));
  }
  return fmt::format("{}-{}", milliseconds, number + 1);
}

}  // namespace

Result<JobQueue::Reclaimed> JobQueue::reclaim(const Lane& lane, int max) {
  const int most = std::clamp(max, 1, static_cast<int>(kBatchItems));
  Reclaimed total;
  // In short scripts until one finds less than it may take.
  for (int done = 0; done < max; done += most) {
    FIXIT_ASSIGN_OR_RETURN(
        const RedisReply reply,
        run_script(redis_, reclaim_script(),
                   {keys::of_lane(lane), {std::to_string(most), std::to_string(retry_.max_crash)}}));
    Reclaimed part = to_reclaimed(reply);
    total.requeued += part.requeued;
    total.dead = std::move(part.dead);
    if (part.requeued < most) break;
  }
  return total;
}

Result<JobQueue::Reclaimed> JobQueue::reclaim_worker(const Lane& lane, const std::string& worker) {
  FIXIT_ASSIGN_OR_RETURN(const std::vector<std::string> ids, leased_jobs(redis_, lane));
  FIXIT_ASSIGN_OR_RETURN(const auto replies,
                         run_scripts(redis_, reclaim_worker_script(),
                                     calls_over(lane, {worker, std::to_string(retry_.max_crash)}, ids)));
  Reclaimed total;
  for (const RedisReply& reply : replies) {
    Reclaimed part = to_reclaimed(reply);
    total.requeued += part.requeued;
    total.dead = std::move(part.dead);
  }
  return total;
}

Status JobQueue::bury(const Lane& lane, const std::string& job, const JobEvent& dead_event) {
  FIXIT_ASSIGN_OR_RETURN(
      const RedisReply reply,
      run_script(redis_, bury_script(),
                 {keys::of_lane(lane), {job, std::string(name_of(dead_event.kind)), dead_event.data}}));
  if (reply.integer >= 0) return {};
  return Status(ErrorCode::kConflict, fmt::format("job {} of lane {} is not dead", job, lane.name()));
}

Status JobQueue::extend_all(const Lane& lane, std::chrono::milliseconds lease) {
  FIXIT_ASSIGN_OR_RETURN(const std::vector<std::string> ids, leased_jobs(redis_, lane));
  return run_scripts(redis_, extend_script(), calls_over(lane, {std::to_string(lease.count())}, ids))
      .status();
}

Status JobQueue::forget(const Lane& lane, const std::string& position,
                        std::span<const std::string> finished) {
  FIXIT_ASSIGN_OR_RETURN(const std::string keep_from, position_after(position));
  // Records first, events last: if this stops half-way, the events name the same jobs again.
  FIXIT_RETURN_IF_ERROR(run_scripts(redis_, forget_script(), calls_over(lane, {""}, finished)).status());
  return run_script(redis_, forget_script(), {keys::of_lane(lane), {keep_from}}).status();
}

Status JobQueue::set_paused(const Lane& lane, const std::string& sweep, bool paused) {
  return run_script(redis_, set_flag_script(), {keys::of_lane(lane), {sweep, "p", paused ? "1" : "0"}})
      .status();
}

Status JobQueue::set_cancelled(const Lane& lane, const std::string& sweep, bool cancelled) {
  return run_script(redis_, set_flag_script(), {keys::of_lane(lane), {sweep, "c", cancelled ? "1" : "0"}})
      .status();
}

Status JobQueue::set_parked(const Lane& lane, bool parked, std::string_view reason) {
  return run_script(redis_, set_parked_script(),
                    {keys::of_lane(lane), {parked ? "1" : "0", std::string(reason)}})
      .status();
}

}  // namespace fixit

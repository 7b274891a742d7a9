// What is read without changing anything: lanes, counts, records, events.
#include <algorithm>
#include <optional>

#include "core/queue/job_queue.h"
#include "core/queue/keys.h"
#include "core/queue/script.h"
#include "fmt/format.h"

namespace fixit {
namespace {

const Script& counts_script() {
  static const Script script("counts");
  return script;
}
const Script& inspect_script() {
  static const Script script("inspect");
  return script;
}

Status unknown_form(std::string_view what) {
  return Status(ErrorCode::kInternal, fmt::format("redis: {} has an unknown form", what));
}

// The letters of scripts/prelude.lua.
std::optional<JobState> state_of(const std::string& letter) {
  if (letter == "r") return JobState::kReady;
  if (letter == "d") return JobState::kDelayed;
  if (letter == "l") return JobState::kLeased;
  if (letter == "f") return JobState::kDone;
  if (letter == "x") return JobState::kDead;
  return std::nullopt;
}

constexpr size_t kCountFields = 11;
constexpr size_t kViewFields = 12;

LaneSweepCounts to_counts(const Lane& lane, const RedisReply* field) {
  LaneSweepCounts counts;
  counts.lane = lane;
  counts.sweep = field[0].text;
  counts.ready = field[1].integer;
  counts.delayed = field[2].integer;
  counts.leased = field[3].integer;
  counts.done = field[4].integer;
  counts.dead = field[5].integer;
  counts.oldest_ready_ms = field[6].integer;
  counts.paused = field[7].integer != 0;
  counts.cancelled = field[8].integer != 0;
  counts.parked = field[9].integer != 0;
  counts.parked_reason = field[10].text;
  return counts;
}

Result<JobView> to_view(const RedisReply* field) {
  const auto state = state_of(field[1].text);
  if (!state) return unknown_form("a job's record");
  JobView view;
  view.job = field[0].text;
  view.state = *state;
  view.sweep = field[2].text;
  view.payload = field[3].text;
  view.progress = field[4].text;
  view.crashes = static_cast<int>(field[5].integer);
  view.infra_failures = static_cast<int>(field[6].integer);
  view.provider_failures = static_cast<int>(field[7].integer);
  view.out_of_memory_failures = static_cast<int>(field[8].integer);
  view.worker = field[9].text;
  view.until_ms = field[10].integer;
  view.error = field[11].text;
  return view;
}

// A stream entry is [id, [j, JOB, k, KIND, d, DATA]].
Result<StreamedEvent> to_event(const Lane& lane, RedisReply& entry) {
  if (entry.items.size() != 2 || entry.items[1].items.size() != 6) return unknown_form("an event");
  std::vector<RedisReply>& fields = entry.items[1].items;
  const auto kind = parse_enum<EventKind>(fields[3].text);
  if (!kind) return unknown_form("an event's kind \"" + fields[3].text + "\"");
  StreamedEvent event;
  event.lane = lane;
  event.position = std::move(entry.items[0].text);
  event.job = std::move(fields[1].text);
  event.event = {*kind, std::move(fields[5].text)};
  return event;
}

}  // namespace

Result<std::vector<Lane>> JobQueue::lanes() {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis_.call({"SMEMBERS", std::string(keys::kLanes)}));
  std::vector<Lane> lanes;
  for (const RedisReply& item : reply.items) {
    FIXIT_ASSIGN_OR_RETURN(Lane lane, Lane::parse(item.text));
    lanes.push_back(std::move(lane));
  }
  std::sort(lanes.begin(), lanes.end());
  return lanes;
}

Result<std::vector<LaneSweepCounts>> JobQueue::counts() {
  FIXIT_ASSIGN_OR_RETURN(const std::vector<Lane> all_lanes, lanes());
  std::vector<ScriptCall> calls;
  for (const Lane& lane : all_lanes) calls.push_back({keys::of_lane(lane), {}});
  FIXIT_ASSIGN_OR_RETURN(const auto replies, run_scripts(redis_, counts_script(), std::move(calls)));
  std::vector<LaneSweepCounts> counts;
  for (size_t i = 0; i < replies.size(); ++i) {
    const std::vector<RedisReply>& fields = replies[i].items;
    if (fields.size() % kCountFields != 0) return unknown_form("the counts of a lane");
    for (size_t at = 0; at < fields.size(); at += kCountFields)
      counts.push_back(to_counts(all_lanes[i], &fields[at]));
  }
  return counts;
}

Result<std::vector<JobView>> JobQueue::inspect(const Lane& lane, std::span<const std::string> jobs) {
  std::vector<ScriptCall> calls;
  for (size_t begin = 0; begin < jobs.size(); begin += kBatchItems) {
    const auto batch = jobs.subspan(begin, std::min(kBatchItems, jobs.size() - begin));
    calls.push_back({keys::of_lane(lane), {batch.begin(), batch.end()}});
  }
  FIXIT_ASSIGN_OR_RETURN(const auto replies, run_scripts(redis_, inspect_script(), std::move(calls)));
  std::vector<JobView> views;
  for (const RedisReply& reply : replies) {
    if (reply.items.size() % kViewFields != 0) return unknown_form("a job's record");
    for (size_t at = 0; at < reply.items.size(); at += kViewFields) {
      FIXIT_ASSIGN_OR_RETURN(JobView view, to_view(&reply.items[at]));
      views.push_back(std::move(view));
    }
  }
  return views;
}

Result<std::vector<JobView>> JobQueue::dead_jobs(const Lane& lane, int max) {
  if (max <= 0) return std::vector<JobView>();
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply,
                         redis_.call({"ZRANGE", keys::dead(lane), "0", std::to_string(max - 1), "REV"}));
  std::vector<std::string> ids;
  for (const RedisReply& item : reply.items) ids.push_back(item.text);
  return inspect(lane, ids);
}

Result<std::vector<StreamedEvent>> JobQueue::read_events(const Lane& lane, const std::string& position,
                                                         int max) {
  FIXIT_ASSIGN_OR_RETURN(RedisReply reply, redis_.call({"XRANGE", keys::events(lane), "(" + position, "+",
                                                        "COUNT", std::to_string(max)}));
  std::vector<StreamedEvent> events;
  for (RedisReply& entry : reply.items) {
    FIXIT_ASSIGN_OR_RETURN(StreamedEvent event, to_event(lane, entry));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace fixit

#include "core/queue/registry.h"

#include <algorithm>
#include <charconv>

#include "core/queue/keys.h"
#include "core/queue/script.h"
#include "fmt/format.h"

namespace fixit {
namespace {

constexpr size_t kStampDigits = 16;  // as scripts/registry/beat.lua writes them

const Script& put_sweep_script() {
  static const Script script("put_sweep");
  return script;
}
const Script& lead_script() {
  static const Script script("lead");
  return script;
}
const Script& resign_script() {
  static const Script script("resign");
  return script;
}
const Script& beat_script() {
  static const Script script("beat");
  return script;
}

Result<int64_t> redis_now_ms(Redis& redis) {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis.call({"TIME"}));
  int64_t seconds = 0;
  int64_t micros = 0;
  if (reply.items.size() == 2) {
    const std::string& first = reply.items[0].text;
    const std::string& second = reply.items[1].text;
    std::from_chars(first.data(), first.data() + first.size(), seconds);
    std::from_chars(second.data(), second.data() + second.size(), micros);
  }
  return seconds * 1000 + micros / 1000;
}

// Peers of a hash whose beat is young enough. One that cannot be read comes from another version: passed
// over.
template <typename Info>
Result<std::vector<Info>> read_peers(Redis& redis, std::string_view key, int64_t max_age_ms) {
  FIXIT_ASSIGN_OR_RETURN(const int64_t now, redis_now_ms(redis));
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis.call({"HVALS", std::string(key)}));
  std::vector<Info> peers;
  for (const RedisReply& item : reply.items) {
    if (item.text.size() < kStampDigits) continue;
    int64_t beat = 0;
    std::from_chars(item.text.data(), item.text.data() + kStampDigits, beat);
    if (now - beat > max_age_ms) continue;
    auto info = decode<Info>(std::string_view(item.text).substr(kStampDigits));
    if (!info.ok()) continue;
    info->heartbeat_ms = beat;
    peers.push_back(std::move(*info));
  }
  std::sort(peers.begin(), peers.end(), [](const Info& a, const Info& b) { return a.id < b.id; });
  return peers;
}

}  // namespace

Status Registry::put_sweep(const FrozenSweep& sweep) {
  const std::string& name = sweep.sweep.name;
  FIXIT_ASSIGN_OR_RETURN(
      const RedisReply reply,
      run_script(redis_, put_sweep_script(), {{keys::sweep(name)}, {sweep.hash(), encode(sweep)}}));
  if (reply.integer != 1)
    return Status(
        ErrorCode::kConflict,
        fmt::format("sweep {} was launched before with other content (problems, models, packs, GPUs or "
                    "rules changed); give the changed sweep another name",
                    name));
  return redis_.call({"SADD", std::string(keys::kSweeps), name}).status();
}

Result<FrozenSweep> Registry::get_sweep(const std::string& name) {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis_.call({"HGET", keys::sweep(name), "frozen"}));
  if (reply.is_nil())
    return Status(ErrorCode::kNotFound, fmt::format("no sweep named {} has been launched", name));
  auto sweep = decode<FrozenSweep>(reply.text);
  if (!sweep.ok()) return sweep.status().with_context("frozen sweep " + name);
  return sweep;
}

Result<std::vector<std::string>> Registry::sweeps() {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis_.call({"SMEMBERS", std::string(keys::kSweeps)}));
  std::vector<std::string> names;
  for (const RedisReply& item : reply.items) names.push_back(item.text);
  std::sort(names.begin(), names.end());
  return names;
}

Result<bool> Registry::lead(LeaderInfo& info, int64_t term_ms) {
  FIXIT_ASSIGN_OR_RETURN(
      const RedisReply reply,
      run_script(redis_, lead_script(),
                 {{std::string(keys::kLeader), std::string(keys::kEpoch)},
                  {info.coordinator, std::to_string(info.epoch), info.endpoint, std::to_string(term_ms)}}));
  if (reply.integer == 0) return false;
  info.epoch = reply.integer;
  return true;
}

Status Registry::resign(const LeaderInfo& info) {
  return run_script(redis_, resign_script(),
                    {{std::string(keys::kLeader)}, {info.coordinator, std::to_string(info.epoch)}})
      .status();
}

Result<LeaderInfo> Registry::leader() {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis_.call({"HMGET", std::string(keys::kLeader),
                                                              "coordinator", "epoch", "endpoint"}));
  if (reply.items.size() != 3 || reply.items[0].is_nil())
    return Status(ErrorCode::kUnavailable, "no coordinator leads; start `fixit coordinator`");
  LeaderInfo info;
  info.coordinator = reply.items[0].text;
  const std::string& epoch = reply.items[1].text;
  std::from_chars(epoch.data(), epoch.data() + epoch.size(), info.epoch);
  info.endpoint = reply.items[2].text;
  return info;
}

Status Registry::beat_worker(const WorkerInfo& info) {
  return run_script(redis_, beat_script(), {{std::string(keys::kWorkers)}, {info.id, encode(info)}}).status();
}

Status Registry::beat_profiler(const ProfilerInfo& info) {
  return run_script(redis_, beat_script(), {{std::string(keys::kProfilers)}, {info.id, encode(info)}})
      .status();
}

Status Registry::remove_peer(const std::string& id) {
  FIXIT_RETURN_IF_ERROR(redis_.call({"HDEL", std::string(keys::kWorkers), id}).status());
  return redis_.call({"HDEL", std::string(keys::kProfilers), id}).status();
}

Result<std::vector<WorkerInfo>> Registry::workers(int64_t max_age_ms) {
  return read_peers<WorkerInfo>(redis_, keys::kWorkers, max_age_ms);
}

Result<std::vector<ProfilerInfo>> Registry::profilers(int64_t max_age_ms) {
  return read_peers<ProfilerInfo>(redis_, keys::kProfilers, max_age_ms);
}

Status Registry::put_state(const SweepState& state) {
  return redis_.call({"HSET", std::string(keys::kStates), state.name, encode(state)}).status();
}

Result<std::vector<SweepState>> Registry::states() {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply reply, redis_.call({"HGETALL", std::string(keys::kStates)}));
  std::vector<SweepState> states;
  for (size_t i = 1; i < reply.items.size(); i += 2) {
    auto state = decode<SweepState>(reply.items[i].text);
    if (!state.ok()) return state.status().with_context("state of sweep " + reply.items[i - 1].text);
    states.push_back(std::move(*state));
  }
  std::sort(states.begin(), states.end(),
            [](const SweepState& a, const SweepState& b) { return a.name < b.name; });
  return states;
}

}  // namespace fixit

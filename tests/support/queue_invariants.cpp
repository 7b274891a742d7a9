#include "tests/support/queue_invariants.h"

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "fmt/format.h"

namespace fixit::testing {
namespace {

// The keys are spelled out again on purpose: renaming one is a change of the schema and must be noticed.
class LaneReader {
 public:
  LaneReader(Redis& redis, const Lane& lane) : redis_(redis), prefix_("fx:{" + lane.name() + "}:") {}

  std::vector<std::string> list(const Redis::Command& command) const {
    Redis::Command full = command;
    full[1] = prefix_ + full[1];
    const auto reply = redis_.call(full);
    std::vector<std::string> texts;
    if (!reply.ok()) std::abort();
    for (const RedisReply& item : reply->items) texts.push_back(item.text);
    return texts;
  }

  // What follows `prefix` in the names of keys.
  std::vector<std::string> names(const std::string& prefix) const {
    const auto reply = redis_.call({"KEYS", "*"});
    if (!reply.ok()) std::abort();
    std::vector<std::string> found;
    for (const RedisReply& item : reply->items)
      if (item.text.starts_with(prefix_ + prefix))
        found.push_back(item.text.substr(prefix_.size() + prefix.size()));
    return found;
  }

 private:
  Redis& redis_;
  std::string prefix_;
};

struct Faults {
  std::string text;
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
};

using Places = std::map<std::string, std::multiset<std::string>>;  // job -> indexes that name it

Places read_places(const LaneReader& lane) {
  Places places;
  for (const std::string& sweep : lane.names("ready:"))
    for (const std::string& job : lane.list({"LRANGE", "ready:" + sweep, "0", "-1"}))
      places[job].insert("ready:" + sweep);
  for (const char* index : {"delayed", "leased", "dead"})
    for (const std::string& job : lane.list({"ZRANGE", index, "0", "-1"})) places[job].insert(index);
  return places;
}

std::string expected_place(const JobView& view) {
  switch (view.state) {
    case JobState::kReady:
      return "ready:" + view.sweep;
    case JobState::kDone:
      return {};
    default:
      return std::string(name_of(view.state));
  }
}

using Tally = std::map<std::pair<std::string, JobState>, int64_t>;

void compare_counts(const std::vector<LaneSweepCounts>& all, const Lane& lane, const LaneReader& reader,
                    Tally& tally, Faults& faults) {
  std::set<std::string> active;
  for (const std::string& sweep : reader.list({"ZRANGE", "active", "0", "-1"})) active.insert(sweep);
  for (const LaneSweepCounts& counts : all) {
    if (counts.lane != lane) continue;
    auto check = [&](JobState state, int64_t kept) {
      const int64_t seen = tally[{counts.sweep, state}];
      if (kept != seen)
        faults.add("{}: {} jobs are {} and the counter says {}", counts.sweep, seen, name_of(state), kept);
    };
    check(JobState::kReady, counts.ready);
    check(JobState::kDelayed, counts.delayed);
    check(JobState::kLeased, counts.leased);
    check(JobState::kDead, counts.dead);
    // Done jobs are forgotten in time, so the counter may only be ahead.
    if (counts.done < tally[{counts.sweep, JobState::kDone}]) faults.add("{}: too few done", counts.sweep);
    const bool claimable = counts.ready > 0 && !counts.paused && !counts.cancelled;
    if (claimable != active.contains(counts.sweep))
      faults.add("{}: claimable is {} and active is {}", counts.sweep, claimable, !claimable);
  }
}

}  // namespace

std::string queue_faults(Redis& redis, const Lane& lane) {
  const LaneReader reader(redis, lane);
  JobQueue queue(redis);
  Faults faults;
  Places places = read_places(reader);
  const auto views = queue.inspect(lane, reader.names("job:"));
  const auto counts = queue.counts();
  if (!views.ok() || !counts.ok()) return "cannot read the lane\n";
  Tally tally;
  for (const JobView& view : *views) {
    ++tally[{view.sweep, view.state}];
    const std::string expected = expected_place(view);
    std::multiset<std::string> wanted;
    if (!expected.empty()) wanted.insert(expected);
    if (places[view.job] != wanted)
      faults.add("{} is {} and stands in {} indexes", view.job, name_of(view.state), places[view.job].size());
    places.erase(view.job);
  }
  for (const auto& [job, indexes] : places) faults.add("{} has no record", job);
  compare_counts(*counts, lane, reader, tally, faults);
  return faults.text;
}

}  // namespace fixit::testing

// fixit status: queue depth, who lives, and how far each sweep is.
#include <fmt/format.h>

#include <cstdio>

#include "coordinator/cli/command_context.h"
#include "coordinator/cli/progress.h"
#include "coordinator/report/outcome.h"
#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"

namespace fixit {
namespace {

struct StatusFlags {
  std::string sweep;
  bool json = false;
  SiteFlags site;
};

constexpr int64_t kAliveMs = 15000;

struct Live {
  std::vector<SweepState> sweeps;
  std::vector<LaneSweepCounts> lanes;
  std::vector<WorkerInfo> workers;
  std::vector<ProfilerInfo> profilers;
  std::string coordinator;  // empty: none leads
};

Result<Live> read_live(Redis& redis, const std::string& sweep) {
  Registry registry(redis);
  JobQueue queue(redis);
  Live live;
  const int64_t newer_than = Clock::system().unix_ms() - kAliveMs;
  FIXIT_ASSIGN_OR_RETURN(live.sweeps, registry.states());
  FIXIT_ASSIGN_OR_RETURN(live.lanes, queue.counts());
  FIXIT_ASSIGN_OR_RETURN(live.workers, registry.workers(newer_than));
  FIXIT_ASSIGN_OR_RETURN(live.profilers, registry.profilers(newer_than));
  if (const auto leader = registry.leader(); leader.ok()) live.coordinator = leader->coordinator;
  if (!sweep.empty()) {
    std::erase_if(live.sweeps, [&](const SweepState& state) { return state.name != sweep; });
    std::erase_if(live.lanes, [&](const LaneSweepCounts& lane) { return lane.sweep != sweep; });
  }
  return live;
}

Json live_json(const Live& live) {
  Json document{{"coordinator", live.coordinator},
                {"sweeps", Json::array()},
                {"lanes", Json::array()},
                {"workers", Json::array()},
                {"profilers", Json::array()}};
  for (const SweepState& state : live.sweeps) document["sweeps"].push_back(to_json(state));
  for (const LaneSweepCounts& lane : live.lanes)
    document["lanes"].push_back(Json{{"lane", lane.lane.name()},
                                     {"sweep", lane.sweep},
                                     {"ready", lane.ready},
                                     {"delayed", lane.delayed},
                                     {"leased", lane.leased},
                                     {"done", lane.done},
                                     {"dead", lane.dead},
                                     {"oldest_ready_ms", lane.oldest_ready_ms},
                                     {"paused", lane.paused},
                                     {"cancelled", lane.cancelled}});
  for (const WorkerInfo& worker : live.workers) document["workers"].push_back(to_json(worker));
  for (const ProfilerInfo& profiler : live.profilers) document["profilers"].push_back(to_json(profiler));
  return document;
}

void print_live(const Live& live) {
  std::printf("coordinator %s\n", live.coordinator.empty() ? "none leads" : live.coordinator.c_str());
  for (const SweepState& state : live.sweeps) std::printf("%s\n", progress_line(state).c_str());
  if (!live.lanes.empty())
    std::printf("\n%-36s %-24s %7s %7s %7s %7s %6s %10s\n", "lane", "sweep", "ready", "delayed", "leased", "done",
                "dead", "oldest");
  for (const LaneSweepCounts& lane : live.lanes)
    std::printf("%s\n", fmt::format("{:<36} {:<24} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8.1f} s{}{}", lane.lane.name(),
                                    lane.sweep, lane.ready, lane.delayed, lane.leased, lane.done, lane.dead,
                                    static_cast<double>(lane.oldest_ready_ms) / 1000, lane.paused ? " paused" : "",
                                    lane.cancelled ? " cancelled" : "")
                            .c_str());
  const int64_t now = Clock::system().unix_ms();
  for (const WorkerInfo& worker : live.workers)
    std::printf("worker %s holds %d jobs, heard %.1f s ago\n", worker.id.c_str(), worker.held,
                static_cast<double>(now - worker.heartbeat_ms) / 1000);
  for (const ProfilerInfo& profiler : live.profilers)
    std::printf("profiler %s (%s, %s) runs %d, busy %.0f %%, heard %.1f s ago\n", profiler.id.c_str(),
                profiler.gpu.c_str(), profiler.device.c_str(), profiler.running, 100 * profiler.busy_share,
                static_cast<double>(now - profiler.heartbeat_ms) / 1000);
}

Status show_status(const StatusFlags& flags) {
  FIXIT_ASSIGN_OR_RETURN(const SiteConfig site, flags.site.load());
  Json document = Json::object();
  bool known = false;
  if (site.redis != "embedded") {
    FIXIT_ASSIGN_OR_RETURN(const RedisAddress address, parse_redis_url(site.redis, site.redis_password_env));
    FIXIT_ASSIGN_OR_RETURN(const auto redis, Redis::connect(address));
    FIXIT_ASSIGN_OR_RETURN(const Live live, read_live(*redis, flags.sweep));
    known = flags.sweep.empty() || !live.sweeps.empty();
    document["live"] = live_json(live);
    if (!flags.json) print_live(live);
  }
  if (!flags.sweep.empty()) {
    const auto outcome = read_outcome(site.journal(), flags.sweep);
    if (outcome.ok()) {
      known = true;
      document["outcome"] = to_json(*outcome);
      if (!flags.json) std::printf("%s", outcome_table(*outcome, {}).c_str());
    } else if (!known) {
      return outcome.status();
    }
  } else if (site.redis == "embedded") {
    return Status(ErrorCode::kInvalid,
                  "no running system is named, so there is no queue to show: set `redis:` in fixit.yaml, FIXIT_REDIS "
                  "or --redis, or name a sweep to read its outcome from the journal in " +
                      site.journal().string());
  }
  if (flags.json) print_json(document);
  return {};
}

}  // namespace

void add_status_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "Queue depth, who lives, progress and outcome of sweeps");
  auto flags = std::make_shared<StatusFlags>();
  command->add_option("sweep", flags->sweep, "Only this sweep, with its outcome so far");
  command->add_flag("--json", flags->json, "Print one JSON document on stdout");
  flags->site.add_to(*command);
  command->callback([flags, &exit_code] {
    const Status status = show_status(*flags);
    if (!status.ok()) exit_code = report_failure(status, flags->json);
  });
}

}  // namespace fixit

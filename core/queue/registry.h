// What else the programs share through Redis: frozen sweeps, who leads, who lives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/queue/redis.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

struct LeaderInfo {
  std::string coordinator;
  int64_t epoch = 0;
  std::string endpoint;  // of the broker
  FIXIT_FIELDS(coordinator, epoch, endpoint);
};

struct WorkerInfo {
  std::string id;
  std::string host;
  int64_t pid = 0;
  int held = 0;              // jobs leased
  int64_t heartbeat_ms = 0;  // unix
  FIXIT_FIELDS(id, host, pid, held, heartbeat_ms);
};

struct ProfilerInfo {
  std::string id;
  std::string host;
  std::string gpu;
  std::string device;
  int running = 0;
  double busy_share = 0;  // 0..1 over the last minute
  int64_t heartbeat_ms = 0;
  FIXIT_FIELDS(id, host, gpu, device, running, busy_share, heartbeat_ms);
};

// Phase of a sweep's life, for status.
struct SweepState {
  std::string name;
  std::string phase;    // rollout, repair, rationale, build, done, failed
  int64_t planned = 0;  // rollout (or evaluate) jobs
  int64_t finished = 0;
  int64_t phase_planned = 0;  // jobs of the current phase
  int64_t phase_finished = 0;
  std::map<std::string, int64_t> turns_by_status;
  std::string error;
  int64_t tokens = 0;
  double usd = 0;
  int64_t updated_ms = 0;
  FIXIT_FIELDS(name, phase, planned, finished, phase_planned, phase_finished, turns_by_status, error, tokens,
               usd, updated_ms);
};

class Registry {
 public:
  explicit Registry(Redis& redis) : redis_(redis) {}

  // kConflict if a sweep of that name with another hash exists; ok if equal.
  Status put_sweep(const FrozenSweep& sweep);
  Result<FrozenSweep> get_sweep(const std::string& name);  // kNotFound
  Result<std::vector<std::string>> sweeps();               // names, ordered

  // Takes or renews the lead: true if `coordinator` leads for the next `term_ms`; then info.epoch is its
  // epoch, to be passed in again. A new leader gets the next epoch, fenced in the same script. REQUIRES:
  // coordinator names one process's life, so that a restarted one never takes itself for its predecessor.
  Result<bool> lead(LeaderInfo& info, int64_t term_ms);
  Status resign(const LeaderInfo& info);
  Result<LeaderInfo> leader();  // kUnavailable if none leads

  Status beat_worker(const WorkerInfo& info);
  Status beat_profiler(const ProfilerInfo& info);
  Status remove_peer(const std::string& id);
  // Those whose last beat is at most `max_age_ms` old. Ages and heartbeat_ms are by Redis's clock: hosts'
  // clocks may differ, so what beat_* was given as heartbeat_ms does not matter. Ordered by id.
  Result<std::vector<WorkerInfo>> workers(int64_t max_age_ms);
  Result<std::vector<ProfilerInfo>> profilers(int64_t max_age_ms);

  Status put_state(const SweepState& state);
  Result<std::vector<SweepState>> states();  // ordered by name

 private:
  Redis& redis_;
};

}  // namespace fixit

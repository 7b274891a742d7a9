// Takes back what died: expired leases, lanes that nobody can measure for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/broker/broker.h"
#include "coordinator/collect/lane_gate.h"
#include "coordinator/collect/ledger.h"
#include "coordinator/collect/redis_watch.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"

namespace fixit {

// tick() is driven by one thread; see() may be called from any.
class Reaper {
 public:
  struct Options {
    int64_t lease_ms = 15000;
    int max_queue = 256;                         // of the broker, per GPU kind
    std::vector<std::filesystem::path> folders;  // that the coordinator writes to
    uint64_t min_free_bytes = 64u << 20;         // on their file systems; with less, claims stop
  };
  Reaper(Redis& redis, JobQueue& queue, Registry& registry, const Ledger& ledger, const Clock& clock,
         Options options);

  // What the broker sees: who lives, what waits.
  void see(const BrokerView& view);
  // Once a second.
  void tick();

 private:
  Status reap();
  Status extend_leases(const std::vector<Lane>& lanes);
  Status reclaim(const Lane& lane);
  Status bury(const Lane& lane, const std::vector<std::string>& jobs);
  Status park(const std::vector<Lane>& lanes);
  Status beat_profilers(const BrokerView& view);
  std::string write_fault() const;

  JobQueue& queue_;
  Registry& registry_;
  const Ledger& ledger_;
  const Clock& clock_;
  const Options options_;
  RedisWatch watch_;
  LaneGate gate_;
  std::optional<std::string> must_extend_;     // why
  std::map<std::string, std::string> parked_;  // lane -> reason that Redis has; empty: open
  std::set<std::string> profilers_;            // ids that Redis has
  bool failing_ = false;

  std::mutex mutex_;
  std::optional<BrokerView> view_;
};

}  // namespace fixit

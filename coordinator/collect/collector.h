// Takes what jobs leave behind out of Redis and into the journal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/collect/ledger.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"

namespace fixit {

// Reads each lane's event log, journals what is new with one fsync per batch, and then lets Redis forget it.
// What cannot be journaled stays in Redis and is read again. Driven by one thread.
class Collector {
 public:
  struct Options {
    int batch = 1000;               // events read per lane and tick
    int64_t state_period_ms = 500;  // between two writes of the sweeps' states
  };
  Collector(JobQueue& queue, Registry& registry, Ledger& ledger, const Clock& clock, Options options);

  // One round over all lanes; true if a lane may have more.
  bool tick();

 private:
  struct LaneProgress {
    std::string cursor = "0";  // read up to here since start; begins before what the journal holds, so
                               // that a former leader's journaled events are forgotten too
    std::string journaled;     // up to here Redis may forget
    std::vector<std::string> finished;  // jobs up to there whose records may go
    bool must_forget = false;
  };

  Result<bool> collect(const Lane& lane);
  Status journal_new(const Lane& lane, const std::vector<StreamedEvent>& events, LaneProgress& progress);
  void forget(const Lane& lane, LaneProgress& progress);
  void publish_states();

  JobQueue& queue_;
  Registry& registry_;
  Ledger& ledger_;
  const Clock& clock_;
  const Options options_;
  std::map<std::string, LaneProgress> lanes_;
  std::map<std::string, int64_t> published_;  // sweep -> version of the state that Redis has
  int64_t published_ms_ = 0;
  std::string outage_;  // last error reported, so that an outage is one line in the log
};

}  // namespace fixit

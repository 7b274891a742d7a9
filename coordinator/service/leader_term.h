// Everything that runs while a coordinator leads, from the first read of the journal to the last write.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/broker/broker.h"
#include "coordinator/chain/chain.h"
#include "coordinator/collect/collector.h"
#include "coordinator/collect/ledger.h"
#include "coordinator/collect/reaper.h"
#include "coordinator/collect/ticker.h"
#include "coordinator/service/job_answers.h"
#include "coordinator/service/launcher.h"
#include "core/config/site_config.h"
#include "core/queue/job_queue.h"
#include "core/queue/redis.h"
#include "core/queue/registry.h"
#include "core/store/store.h"

namespace fixit {

// Broker, collector, reaper and chain of one epoch. The destructor stops them all; nothing is journaled after
// it.
class LeaderTerm {
 public:
  struct Options {
    SiteConfig site;
    RedisAddress redis;
    std::string coordinator;
    int64_t epoch = 0;
    RetryPolicy retry;
    uint64_t min_free_bytes = 64u << 20;
    int64_t stall_ms = 5000;
  };
  // kConflict while another process holds the store or the journal.
  static Result<std::unique_ptr<LeaderTerm>> start(Options options, const Clock& clock);
  ~LeaderTerm();
  LeaderTerm(const LeaderTerm&) = delete;
  LeaderTerm& operator=(const LeaderTerm&) = delete;

  std::string endpoint() const { return broker_->endpoint(); }

 private:
  LeaderTerm(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  Status open();
  Status start_broker();
  void start_threads();

  const Options options_;
  const Clock& clock_;
  // In the order of what needs what; the destructor takes them down from the end.
  std::unique_ptr<BlobStore> store_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Redis> work_redis_;     // launches and chain
  std::unique_ptr<Redis> collect_redis_;  // collector, so that a launch of a million jobs does not delay it
  std::unique_ptr<Redis> reap_redis_;
  std::unique_ptr<JobQueue> work_queue_, collect_queue_, reap_queue_;
  std::unique_ptr<Registry> work_registry_, collect_registry_, reap_registry_;
  std::unique_ptr<Chain> chain_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<JobAnswers> answers_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<Ticker> chain_ticker_, collector_ticker_, reaper_ticker_;
  std::unique_ptr<Broker> broker_;
};

}  // namespace fixit

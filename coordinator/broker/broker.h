// The broker: profile requests from workers to profilers, blobs, and the command line's requests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/store/store.h"
#include "core/wire/message.h"

namespace fixit {

struct ProfilerView {
  std::string id;
  std::string host;
  ProfilerCapability capability;
  int running = 0;
  double busy_share = 0;
};

struct BrokerView {
  std::vector<ProfilerView> profilers;
  std::map<std::string, int> queued;  // GPU kind -> requests waiting
};

class Broker {
 public:
  struct Options {
    std::string listen;  // tcp://127.0.0.1:*
    std::string coordinator;
    int64_t epoch = 0;
    int64_t silence_ms = 10000;  // without a heartbeat: a peer is gone
    int64_t heartbeat_ms = 1000;
    int64_t view_ms = 1000;
    int max_queue = 256;  // waiting requests per GPU kind; beyond it kProfile is answered kFull
    int max_profiler_deaths =
        2;  // a request that took so many profilers with it ends as INFRA, with evidence
    BlobStore* store = nullptr;
    const Clock* clock = nullptr;
    // Run on a thread of the broker's pool, may block.
    std::function<Result<Launched>(const LaunchRequest&)> launch;
    // Called on the broker's thread; the answer may come at any time from any thread.
    std::function<void(const JobRef&, std::function<void(Result<JobResult>)>)> await_job;
    // Each view_ms, on the broker's thread: who lives and what waits.
    std::function<void(const BrokerView&)> on_view;
  };
  static Result<std::unique_ptr<Broker>> start(Options options);
  virtual ~Broker() = default;  // stops the thread; peers reconnect to the next one
  virtual std::string endpoint() const = 0;
};

}  // namespace fixit

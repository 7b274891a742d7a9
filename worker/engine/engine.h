// Drives all trajectories of a worker: claims, steps, waiting for models, compilers and profilers.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/queue/job_queue.h"
#include "core/queue/registry.h"
#include "core/store/store.h"
#include "core/wire/message.h"
#include "worker/compile/compiler.h"
#include "worker/llm/llm_client.h"

namespace fixit {

// One thread owns the trajectories and serves one queue of events; a trajectory that waits for a model, a
// compiler or a profiler holds no thread. Steps that block (store, Redis, spool) run on a small pool.
class Engine {
 public:
  // The world, which must outlive the engine. Callbacks of llm, compiler and profile may come at any time,
  // also after the engine has gone: they then do nothing.
  struct Parts {
    Redis* redis = nullptr;     // commits and claims
    Redis* beat = nullptr;      // a connection for heartbeats alone
    Redis* blocking = nullptr;  // a connection for waiting
    BlobStore* store = nullptr;
    LlmClient* llm = nullptr;
    Compiler* compiler = nullptr;
    // Sends the request to the broker; the answer comes exactly once, from any thread.
    std::function<void(const ProfileRequest&, std::function<void(Result<Verdict>)>)> profile;
    const Clock* clock = &Clock::system();
  };
  struct Options {
    WorkerInfo worker;  // id, host, pid
    std::filesystem::path spool;
    int trajectories = 64;  // in flight
    std::chrono::milliseconds lease{15000};
    std::vector<std::string> models;           // patterns; empty: all
    std::vector<std::string> gpus = {"cpu*"};  // patterns of GPU kinds that the compiler serves
    RetryPolicy retry;
  };
  // Delivers replies left in the spool, then claims. kDenied if the spool cannot be made.
  static Result<std::unique_ptr<Engine>> start(Parts parts, Options options);

  // Claims no more, gives back uncharged what waits, lets steps that run come to their commit. Within
  // seconds. The destructor does the same.
  virtual void stop() = 0;
  virtual int held() const = 0;  // jobs leased
  virtual ~Engine() = default;
};

}  // namespace fixit

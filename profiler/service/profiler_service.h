// The profiler's loop: requests from the broker to the evaluator, verdicts back until they are acknowledged.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/status.h"
#include "profiler/service/evaluator.h"

namespace fixit {

struct ProfilerServiceOptions {
  std::function<Result<std::string>()> endpoint;  // as in BrokerClient::Options
  std::string id;                                 // as in Hello
  std::string host;
  int64_t blob_timeout_ms = 20000;  // one artifact or tensor file from the coordinator
  size_t blob_cache_bytes = 256u << 20;
  int64_t repost_ms = 2000;  // a verdict that is not acknowledged is offered again this often
  int64_t drain_ms = 30000;  // after `stop`: how long the running evaluation may take to end by itself
};

// Serves on the calling thread until `stop` is true, then drains: takes nothing new, finishes what runs (or
// gives it up after drain_ms), offers the last verdicts and leaves. The broker's unavailability is never an
// error: it is looked for again and again.
void serve_profiler(Evaluator& evaluator, const ProfilerServiceOptions& options,
                    const std::atomic<bool>& stop);

}  // namespace fixit

// One evaluation, whatever the target.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/config/gpu_config.h"
#include "core/store/store.h"
#include "core/wire/message.h"

namespace fixit {

// Not thread-safe: one evaluation at a time, on one thread.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual const ProfilerCapability& capability() const = 0;
  // Never fails: what cannot be judged is a verdict of status kInfra with check and evidence. `cancelled`
  // ends it early with kInfra, check "cancelled".
  virtual Verdict evaluate(const ProfileRequest& request, BlobStore& blobs,
                           const std::atomic<bool>& cancelled) = 0;
};

// The CPU target. Self-test at start: compiler features of this machine against gpu.arch, sandbox, ptrace,
// reference library. kDenied or kUnsupported with what is missing.
Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const GpuConfig& gpu, const std::string& profiler_id);

}  // namespace fixit

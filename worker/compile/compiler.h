// Candidate sources to shared objects, in the compile sandbox, cached by content.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/config/gpu_config.h"
#include "core/record/job.h"
#include "core/store/store.h"

namespace fixit {

struct CompileJob {
  std::string source;
  std::map<std::string, std::string> headers;  // name -> content, in the include path
  GpuConfig gpu;
};

// A bounded pool of compiler processes. Thread-safe; callbacks run on a pool thread.
class Compiler {
 public:
  // kNotFound if no g++ is installed. `store` holds artifacts, logs and the cache's "compile/KEY" names.
  static Result<std::unique_ptr<Compiler>> start(BlobStore& store, int parallel);
  virtual ~Compiler() = default;
  virtual void submit(CompileJob job, std::function<void(CompileRecord)> done) = 0;
  virtual std::string toolchain() const = 0;  // "g++ 12.2.0"
};

}  // namespace fixit

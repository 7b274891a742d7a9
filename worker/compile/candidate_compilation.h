// What one compilation means: the record of it.
#pragma once

#include <atomic>
#include <string>

#include "core/store/store.h"
#include "worker/compile/gxx.h"

namespace fixit {

// Hash of everything that the object depends on.
std::string compile_key(const Gxx& gxx, const CompileJob& job);

struct Compiled {
  CompileRecord record;     // without key and toolchain
  bool repeatable = false;  // the same again would give the same: may be cached
};

// Compiles in the calling thread. Whatever is the sandbox's, the disk's or the store's fault is status kInfra
// with check and evidence.
Compiled compile_candidate(const Gxx& gxx, const CompileJob& job, BlobStore& store,
                           const std::atomic<bool>& stopping);

}  // namespace fixit

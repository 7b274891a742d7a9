// What the CPU target needs to know of the machine it runs on.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fixit {

std::string cpu_product_name();  // "model name" of /proc/cpuinfo
std::string kernel_release();

// The cores that candidate and reference are pinned to: the last `count` that this process may use, so that
// the first ones stay with the supervisor. kUnsupported if there are fewer.
Result<std::vector<int>> target_cores(int count);

// Whether code built with -march=ARCH runs here: x86-64, x86-64-v2 ... v4, native, and the names of common
// server and desktop cores. kUnsupported says what the machine lacks or which names are known.
Status check_architecture(const std::string& arch);

// Floating point operations per core and cycle that no code can exceed: two units of 16 float32
// multiply-adds, more where the machine has BF16 dot products or AMX tiles.
double flops_per_cycle_bound();

// Whether a child may be traced: what counting instructions needs. kDenied with the reason.
Status check_tracing();

// Keeps the calling thread off `cores` while it lives, so that nothing but the measured work runs there. Does
// nothing where no other core is left. Restores the thread's affinity.
class KeepOffCores {
 public:
  explicit KeepOffCores(const std::vector<int>& cores);
  ~KeepOffCores();
  KeepOffCores(const KeepOffCores&) = delete;
  KeepOffCores& operator=(const KeepOffCores&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace fixit

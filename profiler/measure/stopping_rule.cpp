#include "profiler/measure/stopping_rule.h"

#include <algorithm>
#include <cmath>

namespace fixit {
namespace {

constexpr double kWarmupShare = 0.2;
constexpr double kCyclesPerMs = 5e6;  // 5 GHz

}  // namespace

bool StoppingRule::more_warmups(int done, double elapsed_ms) const {
  if (done >= limits_.warmup_calls) return false;
  return done == 0 || elapsed_ms < kWarmupShare * limits_.budget_ms;
}

bool StoppingRule::more_timed(int done, double elapsed_ms) const {
  if (done >= limits_.timed_calls) return false;
  return done < limits_.min_timed_calls || elapsed_ms < limits_.budget_ms;
}

int64_t call_deadline_ms(double minimum_s, double factor, double reference_ms) {
  return static_cast<int64_t>(std::ceil(std::max(minimum_s * 1000, factor * reference_ms)));
}

double physics_floor_ms(double flops, int cores, double flops_per_cycle) {
  return flops / (std::max(1, cores) * flops_per_cycle * kCyclesPerMs);
}

}  // namespace fixit

// When to stop calling, how long to wait for a call, and what no machine can beat.
#pragma once

#include <cstdint>

namespace fixit {

// Decides from counts and elapsed time alone; the caller measures.
class StoppingRule {
 public:
  struct Limits {
    int warmup_calls = 10;
    int timed_calls = 50;
    int min_timed_calls = 5;   // taken even when the budget is spent: fewer say nothing
    double budget_ms = 30000;  // of warm-ups and timed calls together
  };
  explicit StoppingRule(const Limits& limits) : limits_(limits) {}

  // Warm-ups end early, but not before the first, once they have used a fifth of the budget.
  bool more_warmups(int done, double elapsed_ms) const;
  // Timed calls end early, but not before min_timed_calls (or timed_calls if that is less), at the budget's
  // end.
  bool more_timed(int done, double elapsed_ms) const;

 private:
  Limits limits_;
};

// How long one call may take: max(minimum, factor x reference). A reference of 0 is an unknown one.
int64_t call_deadline_ms(double minimum_s, double factor, double reference_ms);

// The least time in which `cores` cores can do `flops` floating point operations, milliseconds: at
// `flops_per_cycle` operations a cycle and 5 GHz, whatever the machine's clock. A lower bound on purpose:
// what is faster did not do the work. 0 for an operator whose work is unknown.
double physics_floor_ms(double flops, int cores, double flops_per_cycle);

}  // namespace fixit

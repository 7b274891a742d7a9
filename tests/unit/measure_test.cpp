#include <gtest/gtest.h>

#include "profiler/measure/stopping_rule.h"
#include "profiler/measure/summary.h"

namespace fixit {
namespace {

TEST(Summary, InterpolatesQuartilesOfUnsortedSamples) {
  const LatencySummary summary = summarize({4, 1, 3, 2}, 2);
  EXPECT_DOUBLE_EQ(summary.min_ms, 1);
  EXPECT_DOUBLE_EQ(summary.q1_ms, 1.75);
  EXPECT_DOUBLE_EQ(summary.median_ms, 2.5);
  EXPECT_DOUBLE_EQ(summary.q3_ms, 3.25);
  EXPECT_EQ(summary.samples, 4);
  EXPECT_EQ(summary.discarded, 2);
}

TEST(Summary, OfOneSampleIsThatSampleAndOfNoneIsZero) {
  EXPECT_DOUBLE_EQ(summarize({7}).q3_ms, 7);
  EXPECT_EQ(summarize({}).samples, 0);
  EXPECT_DOUBLE_EQ(summarize({}).median_ms, 0);
}

TEST(Noise, IsASpreadBeyondTheThresholdOfTheMedian) {
  EXPECT_FALSE(is_noisy(summarize({10, 10, 10, 10, 10})));
  EXPECT_FALSE(is_noisy(summarize({9.3, 9.5, 10, 10.5, 10.9})));  // quartiles 1.0 apart
  EXPECT_TRUE(is_noisy(summarize({8, 9, 10, 11, 12})));           // 2.0 apart
}

TEST(Noise, IsNotHiddenByOneOutlierNorByTooFewSamples) {
  EXPECT_FALSE(is_noisy(summarize({10, 10, 10, 10, 10, 10, 500})));
  EXPECT_TRUE(is_noisy(summarize({10, 10, 10, 10})));
  EXPECT_TRUE(is_noisy(summarize({})));
}

TEST(StoppingRule, TakesAllCallsWithinTheBudget) {
  const StoppingRule rule({});
  int warmups = 0, timed = 0;
  for (double elapsed = 0; rule.more_warmups(warmups, elapsed); elapsed += 1) ++warmups;
  for (double elapsed = 10; rule.more_timed(timed, elapsed); elapsed += 1) ++timed;
  EXPECT_EQ(warmups, 10);
  EXPECT_EQ(timed, 50);
}

TEST(StoppingRule, TakesFewerCallsOfASlowKernelButNeverTooFew) {
  const StoppingRule rule({});
  // 4 s a call: the second warm-up ends beyond a fifth of 30 s.
  int warmups = 0, timed = 0;
  double elapsed = 0;
  for (; rule.more_warmups(warmups, elapsed); elapsed += 4000) ++warmups;
  EXPECT_EQ(warmups, 2);
  for (; rule.more_timed(timed, elapsed); elapsed += 4000) ++timed;
  EXPECT_EQ(timed, 6);  // at 8, 12, 16, 20, 24, 28 s
  timed = 0;
  for (elapsed = 40000; rule.more_timed(timed, elapsed); elapsed += 10000) ++timed;
  EXPECT_EQ(timed, 5);
}

TEST(StoppingRule, NeverTakesMoreThanAskedFor) {
  const StoppingRule rule({0, 3, 5, 30000});
  EXPECT_FALSE(rule.more_warmups(0, 0));
  EXPECT_TRUE(rule.more_timed(2, 0));
  EXPECT_FALSE(rule.more_timed(3, 0));
}

TEST(Deadline, IsTheLargerOfMinimumAndFactorTimesReference) {
  EXPECT_EQ(call_deadline_ms(2, 200, 0), 2000);
  EXPECT_EQ(call_deadline_ms(2, 200, 9), 2000);
  EXPECT_EQ(call_deadline_ms(2, 200, 30), 6000);
}

TEST(PhysicsFloor, IsWorkOverTheBound) {
  EXPECT_DOUBLE_EQ(physics_floor_ms(3.2e8, 1, 64), 1);
  EXPECT_DOUBLE_EQ(physics_floor_ms(3.2e8, 2, 64), 0.5);
  EXPECT_DOUBLE_EQ(physics_floor_ms(0, 1, 64), 0);
}

}  // namespace
}  // namespace fixit

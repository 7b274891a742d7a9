// A worker killed in the middle of a sweep and a profiler killed in the middle of an evaluation cost time,
// and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "coordinator/local/local_stack.h"
#include "core/queue/registry.h"
#include "tests/endtoend/demonstration.h"
#include "tests/support/eventually.h"

namespace fixit::testing {
namespace {

using ::testing::IsEmpty;

constexpr std::chrono::minutes kLimit{6};

int64_t finished_turns(Registry& registry) {
  int64_t turns = 0;
  if (const auto states = registry.states(); states.ok())
    for (const SweepState& state : *states)
      for (const auto& [status, count] : state.turns_by_status) turns += count;
  return turns;
}

bool some_profiler_runs(Registry& registry) {
  const auto profilers = registry.profilers(3000);
  if (!profilers.ok()) return false;
  for (const ProfilerInfo& profiler : *profilers)
    if (profiler.running > 0) return true;
  return false;
}

std::unique_ptr<LocalStack> start_stack(const Demonstration& demonstration) {
  LocalStack::Options options;
  options.site = demonstration.site();
  options.gpu = demonstration.gpu().string();
  options.programs = program_folder();
  auto stack = LocalStack::start(std::move(options));
  EXPECT_TRUE(stack.ok()) << stack.status().to_string();
  return stack.ok() ? std::move(*stack) : nullptr;
}

std::future<Demonstration::Finished> launch(const Demonstration& demonstration, const LocalStack& stack) {
  return std::async(std::launch::async, [&demonstration, redis = stack.site().redis] {
    return demonstration.fixit({"launch", demonstration.sweep().string(), "--wait", "--redis", redis,
                                "--data", demonstration.data().string()});
  });
}

TEST(KilledPartsTest, WorkerAndProfilerKilledMidwayGiveTheSameTurnsAndRows) {
  Demonstration undisturbed;
  {
    const auto stack = start_stack(undisturbed);
    ASSERT_NE(stack, nullptr);
    auto finished = launch(undisturbed, *stack);
    const auto result = finished.get();
    ASSERT_EQ(result.ending, "exit code 0") << result.output;
  }

  Demonstration disturbed;
  {
    const auto stack = start_stack(disturbed);
    ASSERT_NE(stack, nullptr);
    const auto redis = Redis::connect(stack->redis().address());
    ASSERT_TRUE(redis.ok()) << redis.status().to_string();
    Registry registry(**redis);
    auto finished = launch(disturbed, *stack);

    ASSERT_TRUE(eventually([&] { return finished_turns(registry) >= 5; }, kLimit));
    kill(stack->worker().pid(), SIGKILL);
    ASSERT_TRUE(eventually([&] { return stack->worker().exited(); }, kLimit));
    ASSERT_TRUE(stack->restart_worker().ok());

    const int64_t before = finished_turns(registry);
    ASSERT_TRUE(eventually([&] { return finished_turns(registry) > before && some_profiler_runs(registry); },
                           kLimit));
    kill(stack->profiler().pid(), SIGKILL);
    ASSERT_TRUE(eventually([&] { return stack->profiler().exited(); }, kLimit));
    ASSERT_TRUE(stack->restart_profiler().ok());

    const auto result = finished.get();
    ASSERT_EQ(result.ending, "exit code 0") << result.output;
  }
  EXPECT_EQ(disturbed.turns(JobKind::kRollout), undisturbed.turns(JobKind::kRollout));
  EXPECT_EQ(disturbed.turns(JobKind::kRepair), undisturbed.turns(JobKind::kRepair));
  EXPECT_EQ(disturbed.rows_without_measurements(), undisturbed.rows_without_measurements());
  EXPECT_THAT(disturbed.duplicates(), IsEmpty());
  EXPECT_EQ(disturbed.rows_without_measurements().size(), 10u);
}

}  // namespace
}  // namespace fixit::testing

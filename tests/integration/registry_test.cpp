// Frozen sweeps, the lead, and who lives, on a real redis-server.
#include "core/queue/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::IsEmpty;
using testing::PrivateRedis;
using ::testing::SizeIs;

class RegistryTest : public ::testing::Test {
 protected:
  FrozenSweep sweep(const std::string& name, const std::string& definition) {
    FrozenSweep frozen;
    frozen.sweep.name = name;
    frozen.problems.push_back({"gemm", definition, {}});
    return frozen;
  }
  PrivateRedis server_;
  std::unique_ptr<Redis> redis_ = server_.connect();
  Registry registry_{*redis_};
};

TEST_F(RegistryTest, SweepIsStoredOnceAndAChangedOneIsAConflict) {
  FrozenSweep first = sweep("a", "{}");
  first.launched_ms = 1;
  ASSERT_TRUE(registry_.put_sweep(first).ok());
  FrozenSweep relaunched = first;
  relaunched.launched_ms = 2;
  EXPECT_TRUE(registry_.put_sweep(relaunched).ok()) << "launching the same sweep again changes nothing";
  const Status conflict = registry_.put_sweep(sweep("a", "{\"changed\": 1}"));
  EXPECT_EQ(conflict.code(), ErrorCode::kConflict);
  EXPECT_THAT(conflict.message(), ::testing::HasSubstr("sweep a"));

  const auto stored = registry_.get_sweep("a");
  ASSERT_TRUE(stored.ok()) << stored.status().to_string();
  EXPECT_EQ(stored->launched_ms, 1);
  EXPECT_EQ(stored->hash(), first.hash());
  EXPECT_EQ(registry_.get_sweep("b").status().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(registry_.put_sweep(sweep("0", "{}")).ok());
  EXPECT_THAT(*registry_.sweeps(), ElementsAre("0", "a"));
}

TEST_F(RegistryTest, OneLeadsAndEachNewLeadHasAnotherEpoch) {
  EXPECT_EQ(registry_.leader().status().code(), ErrorCode::kUnavailable);
  LeaderInfo a{"a", 0, "tcp://a"};
  LeaderInfo b{"b", 0, "tcp://b"};
  ASSERT_TRUE(*registry_.lead(a, 60000));
  EXPECT_EQ(a.epoch, 1);
  EXPECT_FALSE(*registry_.lead(b, 60000));
  EXPECT_EQ(b.epoch, 0);
  ASSERT_TRUE(*registry_.lead(a, 60000)) << "renewed";
  EXPECT_EQ(a.epoch, 1);
  EXPECT_EQ(registry_.leader()->endpoint, "tcp://a");

  LeaderInfo impostor{"a", 7, "tcp://x"};
  EXPECT_FALSE(*registry_.lead(impostor, 60000)) << "the same name with another epoch";
  ASSERT_TRUE(registry_.resign(b).ok());
  EXPECT_EQ(registry_.leader()->coordinator, "a") << "nobody resigns for another";
  ASSERT_TRUE(registry_.resign(a).ok());
  ASSERT_TRUE(*registry_.lead(b, 60000));
  EXPECT_EQ(b.epoch, 2);
  EXPECT_FALSE(*registry_.lead(a, 60000)) << "the former leader's epoch is past";
}

TEST_F(RegistryTest, LeadEndsWithItsTermAndTheFormerLeaderDoesNotGetItsEpochBack) {
  LeaderInfo a{"a", 0, "tcp://a"};
  LeaderInfo b{"b", 0, "tcp://b"};
  ASSERT_TRUE(*registry_.lead(a, 30));
  EXPECT_TRUE(eventually([&] { return *registry_.lead(b, 30); }));
  EXPECT_EQ(b.epoch, 2);
  EXPECT_TRUE(eventually([&] { return *registry_.lead(a, 60000); }));
  EXPECT_EQ(a.epoch, 3);
}

TEST_F(RegistryTest, OfManyCandidatesAtOnceOneLeads) {
  std::vector<std::future<bool>> candidates;
  for (int i = 0; i < 8; ++i)
    candidates.push_back(std::async(std::launch::async, [this, i] {
      const auto connection = server_.connect();
      LeaderInfo info{"c" + std::to_string(i), 0, "x"};
      return *Registry(*connection).lead(info, 60000);
    }));
  int leaders = 0;
  for (auto& candidate : candidates) leaders += candidate.get() ? 1 : 0;
  EXPECT_EQ(leaders, 1);
}

TEST_F(RegistryTest, PeersAreSeenByRedisClockUntilTheyFallSilentOrLeave) {
  WorkerInfo worker{"w1", "host", 42, 7, /*heartbeat_ms=*/1};  // a host whose clock is decades behind
  ASSERT_TRUE(registry_.beat_worker(worker).ok());
  worker.id = "w0";
  ASSERT_TRUE(registry_.beat_worker(worker).ok());
  ProfilerInfo profiler{"p", "host", "cpu", "Xeon", 1, 0.5, 0};
  ASSERT_TRUE(registry_.beat_profiler(profiler).ok());

  const auto workers = registry_.workers(60000);
  ASSERT_THAT(*workers, SizeIs(2));
  EXPECT_EQ((*workers)[0].id, "w0");
  EXPECT_EQ((*workers)[1].held, 7);
  EXPECT_GT((*workers)[1].heartbeat_ms, 1600000000000);
  const auto profilers = registry_.profilers(60000);
  ASSERT_THAT(*profilers, SizeIs(1));
  EXPECT_EQ((*profilers)[0].device, "Xeon");
  EXPECT_DOUBLE_EQ((*profilers)[0].busy_share, 0.5);

  EXPECT_TRUE(eventually([&] { return registry_.workers(5)->empty(); })) << "silent for longer than 5 ms";
  ASSERT_TRUE(registry_.remove_peer("w0").ok());
  ASSERT_TRUE(registry_.remove_peer("p").ok());
  EXPECT_THAT(*registry_.workers(60000), SizeIs(1));
  EXPECT_THAT(*registry_.profilers(60000), IsEmpty());
}

TEST_F(RegistryTest, PeerThatCannotBeReadIsPassedOver) {
  ASSERT_TRUE(registry_.beat_worker({"w", "host", 1, 0, 0}).ok());
  ASSERT_TRUE(redis_->call({"HSET", "fx:workers", "odd", "\xc1"}).ok());
  ASSERT_TRUE(redis_->call({"HSET", "fx:workers", "odder", "9999999999999999\xc1"}).ok());
  EXPECT_THAT(*registry_.workers(60000), SizeIs(1));
}

TEST_F(RegistryTest, StatesAreReplacedByName) {
  SweepState state{.name = "b", .phase = "rollout", .planned = 3};
  ASSERT_TRUE(registry_.put_state(state).ok());
  state.phase = "done";
  state.turns_by_status["CORRECT"] = 2;
  ASSERT_TRUE(registry_.put_state(state).ok());
  ASSERT_TRUE(registry_.put_state({.name = "a"}).ok());
  const auto states = registry_.states();
  ASSERT_TRUE(states.ok());
  ASSERT_THAT(*states, SizeIs(2));
  EXPECT_EQ((*states)[0].name, "a");
  EXPECT_EQ((*states)[1].phase, "done");
  EXPECT_EQ((*states)[1].turns_by_status.at("CORRECT"), 2);
}

}  // namespace
}  // namespace fixit

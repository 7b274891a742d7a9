#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/service/request_shelf.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FixedClock : public Clock {
 public:
  int64_t unix_ms() const override { return now; }
  int64_t steady_ms() const override { return now; }
  int64_t now = 1'000'000;
};

ProfileRequest request(const std::string& key, int64_t deadline_ms = 0) {
  ProfileRequest result;
  result.key = key;
  result.deadline_ms = deadline_ms;
  return result;
}

class RequestShelfTest : public ::testing::Test {
 protected:
  FixedClock clock_;
  RequestShelf shelf_{clock_};
};

TEST_F(RequestShelfTest, HandsOutInOrderOfArrivalAndTakesEachRequestOnce) {
  EXPECT_TRUE(shelf_.put(request("a")));
  EXPECT_TRUE(shelf_.put(request("b")));
  EXPECT_FALSE(shelf_.put(request("b")));
  EXPECT_THAT(shelf_.held(), ElementsAre("a", "b"));
  EXPECT_EQ(shelf_.take(0)->key, "a");
  EXPECT_FALSE(shelf_.put(request("a"))) << "it runs";
  EXPECT_THAT(shelf_.held(), ElementsAre("a", "b"));
}

TEST_F(RequestShelfTest, KeepsAVerdictUntilItIsAcknowledged) {
  shelf_.put(request("a"));
  shelf_.take(0);
  Verdict verdict;
  verdict.status = TurnStatus::kCorrect;
  shelf_.finish(verdict);
  EXPECT_THAT(shelf_.held(), IsEmpty());
  EXPECT_FALSE(shelf_.put(request("a"))) << "its verdict is here";
  ASSERT_EQ(shelf_.unacknowledged().size(), 1u);
  EXPECT_EQ(shelf_.unacknowledged()[0].key, "a");
  EXPECT_EQ(shelf_.unacknowledged()[0].verdict.status, TurnStatus::kCorrect);
  EXPECT_FALSE(shelf_.wait_acknowledged(0));
  shelf_.acknowledge("a");
  EXPECT_TRUE(shelf_.wait_acknowledged(0));
  EXPECT_TRUE(shelf_.put(request("a"))) << "asked for again";
}

TEST_F(RequestShelfTest, EndsExpiredRequestsAsInfraWithoutHandingThemOut) {
  shelf_.put(request("late", clock_.now - 1));
  shelf_.put(request("in time", clock_.now + 1));
  EXPECT_EQ(shelf_.take(0)->key, "in time");
  ASSERT_EQ(shelf_.unacknowledged().size(), 1u);
  EXPECT_EQ(shelf_.unacknowledged()[0].key, "late");
  EXPECT_EQ(shelf_.unacknowledged()[0].verdict.status, TurnStatus::kInfra);
  EXPECT_EQ(shelf_.unacknowledged()[0].verdict.check, "deadline passed");
}

TEST_F(RequestShelfTest, CancelsWaitingRequestsAtOnceAndAsksRunningOnesToEnd) {
  shelf_.put(request("runs"));
  shelf_.put(request("waits"));
  shelf_.take(0);
  shelf_.cancel("waits", "nobody waits for it");
  ASSERT_EQ(shelf_.unacknowledged().size(), 1u);
  EXPECT_EQ(shelf_.unacknowledged()[0].verdict.check, "cancelled");
  EXPECT_EQ(shelf_.unacknowledged()[0].verdict.evidence, "nobody waits for it");
  EXPECT_FALSE(shelf_.cancelled());
  shelf_.cancel("runs", "nobody waits for it");
  EXPECT_TRUE(shelf_.cancelled());
  shelf_.cancel("unknown", "");
  shelf_.finish({});
  shelf_.put(request("next"));
  shelf_.take(0);
  EXPECT_FALSE(shelf_.cancelled()) << "a cancellation is of one request";
}

TEST_F(RequestShelfTest, DropsWhatWaitsWithoutAVerdict) {
  shelf_.put(request("a"));
  shelf_.drop_waiting();
  EXPECT_FALSE(shelf_.take(0).has_value());
  EXPECT_THAT(shelf_.unacknowledged(), IsEmpty());
}

}  // namespace
}  // namespace fixit

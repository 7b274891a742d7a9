// Every transition of the job queue, on a real redis-server. After each test the whole lane is read and its
// indexes and counters are compared with its records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "core/queue/job_queue.h"
#include "fmt/format.h"
#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"
#include "tests/support/queue_invariants.h"

namespace fixit {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::IsEmpty;
using testing::PrivateRedis;
using ::testing::SizeIs;

class QueueTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new PrivateRedis; }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(redis_->call({"FLUSHALL"}).ok()); }
  void TearDown() override { EXPECT_EQ(testing::queue_faults(*redis_, lane_), ""); }

  std::vector<NewJob> jobs(int count, const std::string& prefix = "job") {
    std::vector<NewJob> list;
    for (int i = 0; i < count; ++i)
      list.push_back({fmt::format("{}{}", prefix, i), fmt::format("payload{}", i)});
    return list;
  }
  void enqueue(int count, const std::string& sweep = "s", int priority = 5,
               const std::string& prefix = "job") {
    const auto done = queue_.enqueue(lane_, sweep, priority, jobs(count, prefix));
    ASSERT_TRUE(done.ok()) << done.status().to_string();
    ASSERT_EQ(done->added, count);
  }
  std::vector<ClaimedJob> claim(int max, std::chrono::milliseconds lease = 60s,
                                const std::string& worker = "w1") {
    auto claimed = queue_.claim(std::vector{lane_}, max, worker, lease);
    EXPECT_TRUE(claimed.ok()) << claimed.status().to_string();
    return claimed.ok() ? std::move(*claimed) : std::vector<ClaimedJob>();
  }
  Lease claim_one(std::chrono::milliseconds lease = 60s) {
    const auto claimed = claim(1, lease);
    EXPECT_THAT(claimed, SizeIs(1));
    return claimed.empty() ? Lease{} : claimed[0].lease;
  }
  JobView view(const std::string& job) {
    const auto views = queue_.inspect(lane_, std::vector{job});
    return views.ok() && !views->empty() ? views->front() : JobView{};
  }
  LaneSweepCounts counts(const std::string& sweep = "s") {
    const auto all = queue_.counts();
    EXPECT_TRUE(all.ok());
    for (const LaneSweepCounts& one : *all)
      if (one.sweep == sweep) return one;
    return {};
  }
  // ready, delayed, leased, done, dead
  std::vector<int64_t> tally(const std::string& sweep = "s") {
    const LaneSweepCounts c = counts(sweep);
    return {c.ready, c.delayed, c.leased, c.done, c.dead};
  }
  std::vector<std::string> events() {
    const auto read = queue_.read_events(lane_, "0", 1000);
    EXPECT_TRUE(read.ok());
    std::vector<std::string> list;
    for (const StreamedEvent& e : *read)
      list.push_back(fmt::format("{} {} {}", e.job, name_of(e.event.kind), e.event.data));
    return list;
  }
  static JobEvent turn(const std::string& data) { return {EventKind::kTurn, data}; }
  static JobEvent end(const std::string& data) { return {EventKind::kJobEnd, data}; }
  // An expired lease is waited for by looking at what reclaim does.
  JobQueue::Reclaimed reclaim_until(int64_t requeued, size_t dead) {
    JobQueue::Reclaimed total;
    EXPECT_TRUE(eventually([&] {
      const auto part = queue_.reclaim(lane_, 100);
      if (!part.ok()) return false;
      total.requeued += part->requeued;
      total.dead = part->dead;
      return total.requeued == requeued && total.dead.size() == dead;
    }));
    return total;
  }

  static PrivateRedis* server_;
  std::unique_ptr<Redis> redis_ = server_->connect();
  Lane lane_{"replay", "cpu"};
  JobQueue queue_{*redis_};
};
PrivateRedis* QueueTest::server_ = nullptr;

TEST(LaneName, SplitsAtTheLastAtAndRefusesBraces) {
  EXPECT_EQ(Lane::parse("qwen3.6@27b@h100")->model, "qwen3.6@27b");
  EXPECT_EQ(Lane::parse("none@cpu")->gpu, "cpu");
  for (const char* wrong : {"", "@", "a@", "@b", "ab", "a{b}@c"})
    EXPECT_EQ(Lane::parse(wrong).status().code(), ErrorCode::kInvalid) << wrong;
}

TEST_F(QueueTest, WholeLifeLeavesEventsInOrderAndNothingElseAfterForget) {
  enqueue(1);
  EXPECT_THAT(tally(), ElementsAre(1, 0, 0, 0, 0));
  const auto claimed = claim(5);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed[0].lease.job, "job0");
  EXPECT_GE(claimed[0].lease.token.size(), 32u);
  EXPECT_EQ(claimed[0].sweep, "s");
  EXPECT_EQ(claimed[0].payload, "payload0");
  EXPECT_EQ(claimed[0].progress, "");
  EXPECT_THAT(tally(), ElementsAre(0, 0, 1, 0, 0));

  const Lease lease = claimed[0].lease;
  ASSERT_TRUE(queue_.commit(lease, "step1", std::vector<JobEvent>{}, 60s).ok());
  ASSERT_TRUE(queue_.commit(lease, std::string("\0\xff", 2), std::vector{turn("t0"), turn("t1")}, 60s).ok());
  EXPECT_EQ(view("job0").progress, std::string("\0\xff", 2));
  ASSERT_TRUE(queue_.finish(lease, std::vector{turn("t2"), end("e")}).ok());
  EXPECT_THAT(tally(), ElementsAre(0, 0, 0, 1, 0));
  EXPECT_THAT(events(), ElementsAre("job0 turn t0", "job0 turn t1", "job0 turn t2", "job0 job_end e"));
  EXPECT_EQ(view("job0").state, JobState::kDone);
  EXPECT_EQ(view("job0").progress, "");

  const auto all = queue_.read_events(lane_, "0", 1000);
  ASSERT_TRUE(queue_.forget(lane_, (*all)[1].position, std::vector<std::string>{}).ok());
  EXPECT_THAT(events(), ElementsAre("job0 turn t2", "job0 job_end e"));
  ASSERT_TRUE(queue_.forget(lane_, all->back().position, std::vector<std::string>{"job0"}).ok());
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_EQ(view("job0").job, "") << "the record is gone";
  EXPECT_THAT(tally(), ElementsAre(0, 0, 0, 1, 0)) << "the count of done jobs stays";
}

TEST_F(QueueTest, EventsAreReadOnFromAPosition) {
  enqueue(1);
  const Lease lease = claim_one();
  ASSERT_TRUE(queue_.finish(lease, std::vector{turn("a"), turn("b"), turn("c")}).ok());
  const auto first = queue_.read_events(lane_, "0", 2);
  ASSERT_THAT(*first, SizeIs(2));
  const auto rest = queue_.read_events(lane_, first->back().position, 2);
  ASSERT_THAT(*rest, SizeIs(1));
  EXPECT_EQ(rest->front().event.data, "c");
  EXPECT_EQ(rest->front().lane, lane_);
  EXPECT_EQ(queue_.forget(lane_, "nonsense", std::vector<std::string>{}).code(), ErrorCode::kInvalid);
}

TEST_F(QueueTest, EnqueueTwiceIsEnqueueOnceInEveryState) {
  enqueue(6);
  const auto claimed = claim(4);
  ASSERT_THAT(claimed, SizeIs(4));
  ASSERT_TRUE(queue_.finish(claimed[0].lease, std::vector<JobEvent>{}).ok());
  JobQueue strict(*redis_, RetryPolicy{.max_infra = 0});
  ASSERT_EQ(*strict.fail(claimed[1].lease, FailureKind::kInfra, "x", std::nullopt, end("d")),
            JobQueue::FailResult::kDead);
  ASSERT_EQ(*queue_.fail(claimed[2].lease, FailureKind::kInfra, "x", 60s, end("d")),
            JobQueue::FailResult::kRetry);
  EXPECT_THAT(tally(), ElementsAre(2, 1, 1, 1, 1));
  const auto again = queue_.enqueue(lane_, "s", 5, jobs(7));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->added, 1);
  EXPECT_EQ(again->existing, 6);
  EXPECT_THAT(tally(), ElementsAre(3, 1, 1, 1, 1));
  auto twice = jobs(1, "twin");
  twice.push_back(twice[0]);
  EXPECT_EQ(queue_.enqueue(lane_, "s", 5, twice)->added, 1) << "twice in one call";
}

TEST_F(QueueTest, EnqueueChecksItsInput) {
  EXPECT_EQ(queue_.enqueue(lane_, "s", 0, jobs(1)).status().code(), ErrorCode::kInvalid);
  EXPECT_EQ(queue_.enqueue(lane_, "s", 10, jobs(1)).status().code(), ErrorCode::kInvalid);
  EXPECT_EQ(queue_.enqueue(Lane{"m", "g@h"}, "s", 1, jobs(1)).status().code(), ErrorCode::kInvalid);
  EXPECT_EQ(queue_.enqueue(Lane{"m}", "g"}, "s", 1, jobs(1)).status().code(), ErrorCode::kInvalid);
}

TEST_F(QueueTest, LateTokenChangesNothing) {
  enqueue(1);
  const Lease late = claim_one(1ms);
  reclaim_until(1, 0);
  const Lease current = claim_one();
  ASSERT_NE(late.token, current.token);
  EXPECT_EQ(queue_.commit(late, "late", std::vector{turn("late")}, 60s).code(), ErrorCode::kStale);
  EXPECT_EQ(queue_.finish(late, std::vector{turn("late")}).code(), ErrorCode::kStale);
  EXPECT_EQ(queue_.fail(late, FailureKind::kInfra, "late", std::nullopt, end("late")).status().code(),
            ErrorCode::kStale);
  ASSERT_TRUE(queue_.release(std::vector{late}).ok());
  EXPECT_THAT(*queue_.heartbeat(std::vector{late, current}, 60s),
              ElementsAre(LeaseState::kLost, LeaseState::kKept));
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_THAT(tally(), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_EQ(view("job0").progress, "");
  EXPECT_TRUE(queue_.finish(current, std::vector<JobEvent>{}).ok());
}

TEST_F(QueueTest, RepeatedCommitAndFinishOfOneAttemptHaveNoSecondEffect) {
  enqueue(1);
  const Lease lease = claim_one();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue_.commit(lease, "p", std::vector{turn("a")}, 60s).ok());
  ASSERT_TRUE(queue_.commit(lease, "p", std::vector{turn("b")}, 60s).ok());
  ASSERT_TRUE(queue_.commit(lease, "p2", std::vector{turn("b")}, 60s).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue_.finish(lease, std::vector{end("e")}).ok());
  EXPECT_THAT(events(), ElementsAre("job0 turn a", "job0 turn b", "job0 turn b", "job0 job_end e"));
  EXPECT_THAT(tally(), ElementsAre(0, 0, 0, 1, 0));
}

TEST_F(QueueTest, HeartbeatAndCommitKeepALeaseThatWouldEnd) {
  enqueue(3);
  const auto claimed = claim(3, 1ms);
  ASSERT_THAT(claimed, SizeIs(3));
  EXPECT_THAT(*queue_.heartbeat(std::vector{claimed[0].lease}, 60s), ElementsAre(LeaseState::kKept));
  EXPECT_TRUE(queue_.commit(claimed[1].lease, "p", std::vector<JobEvent>{}, 60s).ok());
  reclaim_until(1, 0);
  EXPECT_EQ(view("job0").state, JobState::kLeased);
  EXPECT_EQ(view("job1").state, JobState::kLeased);
  EXPECT_EQ(view("job2").state, JobState::kReady);
}

TEST_F(QueueTest, ReclaimKeepsProgressAndPutsTheJobFirst) {
  enqueue(3);
  const Lease lease = claim_one();
  ASSERT_TRUE(queue_.commit(lease, "half way", std::vector<JobEvent>{}, 1ms).ok());
  reclaim_until(1, 0);
  const auto next = claim(1);
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].lease.job, "job0");
  EXPECT_EQ(next[0].progress, "half way");
  EXPECT_EQ(next[0].crashes, 1);
}

TEST_F(QueueTest, JobThatCrashesBeyondTheLimitIsQuarantinedAndBuriedOnce) {
  enqueue(1);
  for (int crash = 1; crash <= 3; ++crash) {
    claim_one(1ms);
    reclaim_until(1, 0);
  }
  const Lease last = claim_one();
  ASSERT_TRUE(queue_.commit(last, "evidence", std::vector<JobEvent>{}, 1ms).ok());
  EXPECT_THAT(reclaim_until(0, 1).dead, ElementsAre("job0"));
  EXPECT_THAT(queue_.reclaim(lane_, 100)->dead, ElementsAre("job0")) << "named until it is buried";
  const auto dead = queue_.dead_jobs(lane_, 10);
  ASSERT_THAT(*dead, SizeIs(1));
  EXPECT_EQ(dead->front().crashes, 4);
  EXPECT_EQ(dead->front().worker, "w1");
  EXPECT_EQ(dead->front().payload, "payload0");
  EXPECT_EQ(dead->front().progress, "evidence");
  EXPECT_THAT(dead->front().error, ::testing::HasSubstr("4 times"));

  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue_.bury(lane_, "job0", end("dead")).ok());
  EXPECT_THAT(events(), ElementsAre("job0 job_end dead"));
  EXPECT_THAT(queue_.reclaim(lane_, 100)->dead, IsEmpty());
  EXPECT_THAT(tally(), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_EQ(queue_.bury(lane_, "absent", end("x")).code(), ErrorCode::kConflict);
  ASSERT_TRUE(queue_.forget(lane_, "0", std::vector<std::string>{"job0"}).ok());
  EXPECT_EQ(view("job0").state, JobState::kDead) << "forget() must not drop quarantined jobs";
}

TEST_F(QueueTest, RetryBudgetsAreSeparateAndTheEventOfDeathComesOnce) {
  JobQueue queue(*redis_,
                 RetryPolicy{.max_infra = 2, .max_provider = 1, .backoff_ms = 1, .max_backoff_ms = 1});
  enqueue(1);
  auto fail = [&](FailureKind kind) {
    EXPECT_TRUE(eventually([&] { return queue.reclaim(lane_, 10).ok() && counts().ready == 1; }));
    return *queue.fail(claim_one(), kind, "went wrong", std::nullopt, end("dead"));
  };
  const Lease first = claim_one();
  EXPECT_EQ(*queue.fail(first, FailureKind::kInfra, "x", std::nullopt, end("dead")),
            JobQueue::FailResult::kRetry);
  EXPECT_EQ(fail(FailureKind::kProvider), JobQueue::FailResult::kRetry);
  EXPECT_EQ(fail(FailureKind::kOutOfMemory), JobQueue::FailResult::kRetry);
  EXPECT_EQ(fail(FailureKind::kInfra), JobQueue::FailResult::kRetry);
  const JobView record = view("job0");
  EXPECT_EQ(record.infra_failures, 2);
  EXPECT_EQ(record.provider_failures, 1);
  EXPECT_EQ(record.out_of_memory_failures, 1);
  EXPECT_EQ(record.crashes, 0);
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_EQ(fail(FailureKind::kProvider), JobQueue::FailResult::kDead);
  EXPECT_EQ(view("job0").error, "went wrong");
  EXPECT_THAT(events(), ElementsAre("job0 job_end dead"));
  EXPECT_THAT(queue.reclaim(lane_, 10)->dead, IsEmpty()) << "its event is there already";
}

TEST_F(QueueTest, RetryAfterIsWaitedInFullAndBackoffIsBounded) {
  JobQueue queue(*redis_, RetryPolicy{.backoff_ms = 1000, .max_backoff_ms = 3000});
  enqueue(1);
  const auto clock = redis_->call({"TIME"});
  const int64_t now = std::stoll(clock->items[0].text) * 1000 + std::stoll(clock->items[1].text) / 1000;
  ASSERT_TRUE(queue.fail(claim_one(), FailureKind::kProvider, "429", 20s, end("d")).ok());
  EXPECT_GE(view("job0").until_ms, now + 20000);
  EXPECT_LE(view("job0").until_ms, now + 20000 + 1000 + 5000) << "asked for, jitter, and a slow machine";
  EXPECT_EQ(queue.reclaim(lane_, 10)->requeued, 0);
  EXPECT_THAT(claim(1), IsEmpty()) << "not before it is due";
}

TEST_F(QueueTest, ReleaseIsUnchargedAndReadyAtOnce) {
  enqueue(3);
  const auto claimed = claim(2);
  ASSERT_TRUE(queue_.commit(claimed[0].lease, "p", std::vector<JobEvent>{}, 60s).ok());
  ASSERT_TRUE(queue_.release(std::vector{claimed[0].lease, claimed[1].lease}).ok());
  EXPECT_THAT(tally(), ElementsAre(3, 0, 0, 0, 0));
  const auto again = claim(2);
  ASSERT_THAT(again, SizeIs(2));
  for (const ClaimedJob& job : again) {
    EXPECT_EQ(job.crashes + job.infra_failures, 0);
    EXPECT_NE(job.lease.job, "job2") << "jobs under way come before new ones";
  }
}

TEST_F(QueueTest, ReclaimWorkerTakesItsLeasesOnlyAndAtOnce) {
  enqueue(4);
  claim(2, 60s, "dead worker");
  claim(2, 60s, "live worker");
  const auto taken = queue_.reclaim_worker(lane_, "dead worker");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->requeued, 2);
  EXPECT_THAT(tally(), ElementsAre(2, 0, 2, 0, 0));
  EXPECT_EQ(view("job0").crashes + view("job1").crashes, 2);
  EXPECT_EQ(view("job2").worker, "live worker");
}

TEST_F(QueueTest, ExtendAllSavesLeasesThatEndedDuringAnOutage) {
  enqueue(2);
  claim(2, 1ms);
  ASSERT_TRUE(queue_.extend_all(lane_, 60s).ok());
  EXPECT_EQ(queue_.reclaim(lane_, 100)->requeued, 0);
  EXPECT_THAT(tally(), ElementsAre(0, 0, 2, 0, 0));
}

TEST_F(QueueTest, SweepsShareALaneByPriorityAndNoneStarves) {
  enqueue(900, "heavy", 8, "h");
  enqueue(900, "light", 2, "l");
  enqueue(900, "middle", 5, "m");
  std::map<std::string, int> taken;
  for (int i = 0; i < 15; ++i)
    for (const ClaimedJob& job : claim(10)) ++taken[job.sweep];
  EXPECT_NEAR(taken["heavy"], 80, 2);
  EXPECT_NEAR(taken["middle"], 50, 2);
  EXPECT_NEAR(taken["light"], 20, 2);
}

TEST_F(QueueTest, LateSweepStartsFairInsteadOfCatchingUp) {
  enqueue(400, "old", 5, "o");
  EXPECT_THAT(claim(200), SizeIs(200));
  enqueue(400, "new", 5, "n");
  std::map<std::string, int> taken;
  for (const ClaimedJob& job : claim(100)) ++taken[job.sweep];
  EXPECT_NEAR(taken["old"], 50, 2);
  EXPECT_NEAR(taken["new"], 50, 2);
}

TEST_F(QueueTest, ClaimServesLanesInTheOrderGiven) {
  const Lane other{"teacher", "cpu"};
  enqueue(2);
  ASSERT_TRUE(queue_.enqueue(other, "s", 5, jobs(2, "other")).ok());
  const auto claimed = queue_.claim(std::vector{other, lane_}, 3, "w", 60s);
  ASSERT_TRUE(claimed.ok());
  ASSERT_THAT(*claimed, SizeIs(3));
  EXPECT_EQ((*claimed)[0].lease.lane, other);
  EXPECT_EQ((*claimed)[1].lease.lane, other);
  EXPECT_EQ((*claimed)[2].lease.lane, lane_);
  EXPECT_THAT(*queue_.lanes(), ElementsAre(lane_, other));
  std::vector<Lease> both = {(*claimed)[2].lease, (*claimed)[0].lease, Lease{other, "absent", "t"}};
  EXPECT_THAT(*queue_.heartbeat(both, 60s),
              ElementsAre(LeaseState::kKept, LeaseState::kKept, LeaseState::kLost));
  EXPECT_EQ(testing::queue_faults(*redis_, other), "");
}

TEST_F(QueueTest, PausedSweepGivesNothingAndKeepsWhatItGets) {
  enqueue(2, "s");
  enqueue(1, "t", 5, "t");
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());
  EXPECT_TRUE(counts("s").paused);
  enqueue(1, "s", 5, "more");
  const auto claimed = claim(10);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed[0].sweep, "t");
  ASSERT_TRUE(queue_.set_paused(lane_, "s", false).ok());
  EXPECT_THAT(claim(10), SizeIs(3));
}

TEST_F(QueueTest, ReleasedJobOfAPausedSweepStaysPaused) {
  enqueue(1);
  const Lease lease = claim_one();
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());
  ASSERT_TRUE(queue_.release(std::vector{lease}).ok());
  EXPECT_THAT(claim(1), IsEmpty());
}

TEST_F(QueueTest, PauseIsAtomicWithClaiming) {
  enqueue(3000);
  std::atomic<bool> stop{false};
  std::atomic<int> taken{0};
  std::thread claimer([&] {
    const auto connection = server_->connect();
    JobQueue queue(*connection);
    while (!stop) {
      const auto jobs = queue.claim(std::vector{lane_}, 1, "w2", 60s);
      if (jobs.ok()) taken += static_cast<int>(jobs->size());
    }
  });
  EXPECT_TRUE(eventually([&] { return taken > 20; }));
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());
  const int64_t leased = counts().leased;
  // Many more claims have run once the bell, which only a claim silences, is gone again.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(redis_->call({"RPUSH", "fx:{replay@cpu}:bell", ""}).ok());
    EXPECT_TRUE(eventually([&] { return redis_->call({"EXISTS", "fx:{replay@cpu}:bell"})->integer == 0; }));
  }
  EXPECT_EQ(counts().leased, leased);
  stop = true;
  claimer.join();
  EXPECT_EQ(taken, leased);
}

TEST_F(QueueTest, ParkedLaneGivesNothingAndSaysWhy) {
  enqueue(1);
  ASSERT_TRUE(queue_.set_parked(lane_, true, "no profiler lives").ok());
  EXPECT_THAT(claim(1), IsEmpty());
  EXPECT_TRUE(counts().parked);
  EXPECT_EQ(counts().parked_reason, "no profiler lives");
  ASSERT_TRUE(queue_.set_parked(lane_, false, "").ok());
  EXPECT_FALSE(counts().parked);
  EXPECT_THAT(claim(1), SizeIs(1));
}

TEST_F(QueueTest, CancelledSweepGivesNothingAndTellsItsHolders) {
  enqueue(2);
  const Lease lease = claim_one();
  ASSERT_TRUE(queue_.set_cancelled(lane_, "s", true).ok());
  EXPECT_THAT(claim(1), IsEmpty());
  EXPECT_THAT(*queue_.heartbeat(std::vector{lease}, 60s), ElementsAre(LeaseState::kCancelled));
  EXPECT_TRUE(queue_.finish(lease, std::vector{end("cancelled")}).ok()) << "its holder still ends it";
  EXPECT_TRUE(counts().cancelled);
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());
  ASSERT_TRUE(queue_.set_cancelled(lane_, "s", false).ok());
  EXPECT_THAT(claim(1), IsEmpty()) << "still paused";
  ASSERT_TRUE(queue_.set_paused(lane_, "s", false).ok());
  EXPECT_THAT(claim(1), SizeIs(1));
}

TEST_F(QueueTest, DoorbellWakesABlockedWaiter) {
  auto blocking = server_->connect();
  JobQueue queue(*redis_);
  auto waiting = std::async(std::launch::async, [&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(queue.wait_for_work(*blocking, std::vector{Lane{"x", "y"}, lane_}, 20s).ok());
    return std::chrono::steady_clock::now() - begin;
  });
  ASSERT_TRUE(eventually([&] {
    return redis_->call({"INFO", "clients"})->text.find("blocked_clients:1") != std::string::npos;
  }));
  enqueue(1);
  EXPECT_LT(waiting.get(), 10s);
}

// The bell is level, not edge: as long as something can be claimed, nobody sleeps beside it.
TEST_F(QueueTest, WaiterReturnsAtOnceWhileWorkIsLeftAndSleepsOtherwise) {
  auto blocking = server_->connect();
  auto rings = [&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(queue_.wait_for_work(*blocking, std::vector{lane_}, 150ms).ok());
    return std::chrono::steady_clock::now() - begin < 150ms;
  };
  EXPECT_FALSE(rings()) << "nothing was ever enqueued";
  enqueue(200);
  for (int i = 0; i < 3; ++i) {
    claim(50);
    EXPECT_TRUE(rings()) << "jobs are left";
  }
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());
  EXPECT_THAT(claim(1), IsEmpty());
  EXPECT_FALSE(rings()) << "paused";
  ASSERT_TRUE(queue_.set_paused(lane_, "s", false).ok());
  EXPECT_TRUE(rings()) << "resumed";
  ASSERT_TRUE(queue_.set_parked(lane_, true, "x").ok());
  EXPECT_FALSE(rings()) << "parked";
  ASSERT_TRUE(queue_.set_parked(lane_, false, "").ok());
  EXPECT_TRUE(rings()) << "opened";
  const auto rest = claim(200);
  EXPECT_FALSE(rings()) << "all claimed";
  ASSERT_TRUE(queue_.release(std::vector{rest[0].lease}).ok());
  EXPECT_TRUE(rings()) << "released";
  claim(1, 1ms);
  reclaim_until(1, 0);
  EXPECT_TRUE(rings()) << "reclaimed";
  EXPECT_TRUE(queue_.reclaim(lane_, 1).ok());
  EXPECT_TRUE(rings()) << "a ring that was taken and not followed by a claim comes again";
}

TEST_F(QueueTest, WaitOutlastsTheConnectionsTimeout) {
  auto blocking = server_->connect(400);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(queue_.wait_for_work(*blocking, std::vector{lane_}, 900ms).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 900ms);
}

TEST_F(QueueTest, BatchesAnswerPerStepAcrossLanesAndChunks) {
  const Lane other{"teacher", "cpu"};
  enqueue(1100);
  ASSERT_TRUE(queue_.enqueue(other, "s", 5, jobs(2, "other")).ok());
  auto claimed = queue_.claim(std::vector{lane_, other}, 2000, "w", 60s);
  ASSERT_THAT(*claimed, SizeIs(1102));
  std::vector<JobStep> steps;
  for (const ClaimedJob& job : *claimed) steps.push_back({job.lease, "p", {turn(job.lease.job)}});
  std::swap(steps[3], steps[1101]);
  steps[7].lease.token = "wrong";
  const auto committed = queue_.commit_all(steps, 60s);
  ASSERT_TRUE(committed.ok()) << committed.status().to_string();
  for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ((*committed)[i], i != 7) << i;
  const auto finished = queue_.finish_all(steps);
  ASSERT_TRUE(finished.ok());
  for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ((*finished)[i], i != 7) << i;
  EXPECT_THAT(tally(), ElementsAre(0, 0, 1, 1099, 0));
  EXPECT_EQ(testing::queue_faults(*redis_, other), "");
}

TEST_F(QueueTest, ConcurrentClaimersNeverShareAJob) {
  enqueue(2000);
  std::vector<std::future<std::vector<std::string>>> claimers;
  for (int i = 0; i < 4; ++i)
    claimers.push_back(std::async(std::launch::async, [this, i] {
      const auto connection = server_->connect();
      JobQueue queue(*connection);
      std::vector<std::string> mine;
      while (true) {
        const auto jobs = queue.claim(std::vector{lane_}, 7, fmt::format("w{}", i), 60s);
        if (!jobs.ok() || jobs->empty()) return mine;
        for (const ClaimedJob& job : *jobs) mine.push_back(job.lease.job);
      }
    }));
  std::multiset<std::string> all;
  for (auto& claimer : claimers)
    for (std::string& job : claimer.get()) all.insert(std::move(job));
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 2000u);
}

// Holds down the fault of queues whose active list and lease set drifted apart for ever.
TEST_F(QueueTest, ReclaimMendsALeaseIndexThatLostOrKeptEntries) {
  enqueue(2);
  const auto claimed = claim(1);
  ASSERT_TRUE(redis_->call({"ZADD", "fx:{replay@cpu}:leased", "1", claimed[0].lease.job}).ok());
  ASSERT_TRUE(redis_->call({"ZADD", "fx:{replay@cpu}:leased", "1", "ghost"}).ok());
  ASSERT_TRUE(redis_->call({"ZADD", "fx:{replay@cpu}:leased", "1", "job1"}).ok());
  EXPECT_EQ(queue_.reclaim(lane_, 100)->requeued, 0) << "the record says that the lease holds";
  EXPECT_TRUE(queue_.finish(claimed[0].lease, std::vector<JobEvent>{}).ok());
}

TEST_F(QueueTest, RestartedServerGoesOnWithEveryJobLeaseAndScript) {
  enqueue(700);
  const Lease lease = claim_one();
  ASSERT_TRUE(queue_.commit(lease, "p", std::vector{turn("t")}, 60s).ok());
  // The file is synced every second; a killed process loses nothing that it has written to the kernel.
  server_->kill();
  server_->start();
  const auto more = queue_.enqueue(lane_, "s", 5, jobs(20000, "more"));
  ASSERT_TRUE(more.ok()) << "scripts unknown to the new server, in pipelines: " << more.status().to_string();
  EXPECT_EQ(more->added, 20000);
  ASSERT_TRUE(queue_.finish(lease, std::vector{end("e")}).ok());
  EXPECT_THAT(events(), ElementsAre("job0 turn t", "job0 job_end e"));
  EXPECT_THAT(tally(), ElementsAre(20699, 0, 0, 1, 0));
}

TEST_F(QueueTest, OutageIsUnavailableEverywhere) {
  PrivateRedis other;
  const auto redis = other.connect(100);
  JobQueue queue(*redis);
  ASSERT_TRUE(queue.enqueue(lane_, "s", 5, jobs(1)).ok());
  other.kill();
  const Lease lease{lane_, "job0", "t"};
  EXPECT_EQ(queue.claim(std::vector{lane_}, 1, "w", 1s).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(queue.commit(lease, "", std::vector<JobEvent>{}, 1s).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(queue.finish(lease, std::vector<JobEvent>{}).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(queue.heartbeat(std::vector{lease}, 1s).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(queue.reclaim(lane_, 1).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(queue.wait_for_work(*redis, std::vector{lane_}, 1s).code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace fixit

// The coordinator's service over a real Redis, journal, store and broker: from launch to rows, through
// restarts and changes of the leader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/journal/journal.h"
#include "coordinator/service/coordinator_service.h"
#include "core/base/file.h"
#include "tests/integration/chain_bed.h"
#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"
#include "tests/support/temporary_folder.h"

namespace fixit::testing {
namespace {

constexpr std::chrono::seconds kLimit{30};
const std::set<JobKind> kAllKinds = {JobKind::kRollout, JobKind::kRepair, JobKind::kRationale,
                                     JobKind::kEvaluate};

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() {
    options_.site.data = data_.path();
    options_.site.lease_s = 10;
    options_.redis = server_.address();
    options_.term_ms = 1000;
    options_.stall_ms = 500;
  }

  std::unique_ptr<CoordinatorService> start(const std::string& id) {
    CoordinatorService::Options options = options_;
    options.id = id;
    auto service = CoordinatorService::start(options);
    EXPECT_TRUE(service.ok()) << service.status().to_string();
    return *std::move(service);
  }
  std::unique_ptr<CoordinatorService> start_leader(const std::string& id) {
    auto service = start(id);
    EXPECT_TRUE(eventually([&] { return service->leading(); }, kLimit)) << service->status().to_string();
    return service;
  }

  SweepState state(const std::string& sweep) {
    const auto states = Registry(*redis_).states();
    if (states.ok())
      for (const SweepState& state : *states)
        if (state.name == sweep) return state;
    return {};
  }
  bool reaches(const std::string& sweep, const std::string& phase) {
    return eventually([&] { return state(sweep).phase == phase; }, kLimit);
  }
  std::string rows(const std::string& sweep) {
    const auto text = read_file(options_.site.datasets() / sweep / "rows.jsonl");
    return text.ok() ? *text : "unreadable: " + text.status().to_string();
  }
  std::vector<JournalRecord> journal(JournalKind kind) {
    std::vector<JournalRecord> records;
    EXPECT_TRUE(read_journal(options_.site.journal(), [&](const JournalRecord& record) {
                  if (record.kind == kind) records.push_back(record);
                  return true;
                }).ok());
    return records;
  }
  // Launches, plays every job, and returns the rows.
  std::string run_whole_chain(const std::string& sweep) {
    const auto service = start_leader("one");
    Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
    Peer client(server_.connect(), PeerRole::kClient, "client");
    EXPECT_TRUE(client.launch(small_sweep(sweep)).ok());
    const auto worker_redis = server_.connect();
    const FakeWorker worker(*worker_redis, client.store(), kAllKinds);
    EXPECT_TRUE(reaches(sweep, "done")) << state(sweep).phase << " " << state(sweep).error;
    return rows(sweep);
  }

  PrivateRedis server_;
  TemporaryFolder data_;
  std::unique_ptr<Redis> redis_ = server_.connect();
  CoordinatorService::Options options_;
};

TEST_F(CoordinatorTest, DrivesASweepFromItsLaunchToItsRows) {
  const std::string jsonl = run_whole_chain("chain");
  EXPECT_EQ(std::count(jsonl.begin(), jsonl.end(), '\n'), 4);  // 2 problems x 2 samples, one failure each

  const SweepState end = state("chain");
  EXPECT_EQ(end.planned, 4);
  EXPECT_EQ(end.finished, 4);
  EXPECT_EQ(end.turns_by_status.at("COMPILE_ERROR"), 4);
  EXPECT_EQ(end.turns_by_status.at("CORRECT"), 8);  // rollouts and repairs
  EXPECT_EQ(end.tokens, 12 * 15);
  EXPECT_DOUBLE_EQ(end.usd, 12 * 0.25);

  const auto datasets = journal(JournalKind::kDataset);
  ASSERT_EQ(datasets.size(), 1u);
  const auto dataset = decode<DatasetRecord>(datasets[0].data);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->failures, 4);
  EXPECT_EQ(dataset->repairs, 4);
  EXPECT_EQ(dataset->rationales, 4);
  EXPECT_EQ(dataset->rows, 4);
  EXPECT_EQ(dataset->rows_sha256, sha256(jsonl));
  EXPECT_EQ(journal(JournalKind::kJobEnd).size(), 12u);
  // What the journal holds has left Redis.
  EXPECT_TRUE(eventually([&] {
    const auto counts = JobQueue(*redis_).counts();
    if (!counts.ok()) return false;
    for (const LaneSweepCounts& lane : *counts) {
      const auto events = JobQueue(*redis_).read_events(lane.lane, "0", 10);
      if (!events.ok() || !events->empty()) return false;
    }
    return true;
  }));
}

TEST_F(CoordinatorTest, RestartsBetweenAllPhasesGiveTheSameRows) {
  const std::string expected = run_whole_chain("chain");
  // The same sweep again on an empty site; the coordinator goes away after every phase.
  ASSERT_TRUE(redis_->call({"FLUSHALL"}).ok());
  const TemporaryFolder other;
  options_.site.data = other.path();
  const std::pair<JobKind, const char*> phases[] = {
      {JobKind::kRollout, "repair"}, {JobKind::kRepair, "rationale"}, {JobKind::kRationale, "done"}};
  int life = 0;
  for (const auto& [kind, next_phase] : phases) {
    const auto service = start_leader("life" + std::to_string(++life));
    Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
    Peer client(server_.connect(), PeerRole::kClient, "client");
    if (kind == JobKind::kRollout) {
      ASSERT_TRUE(client.launch(small_sweep("chain")).ok());
    }
    const auto worker_redis = server_.connect();
    const FakeWorker worker(*worker_redis, client.store(), {kind});
    ASSERT_TRUE(reaches("chain", next_phase)) << state("chain").phase << " " << state("chain").error;
  }
  EXPECT_EQ(rows("chain"), expected);
  EXPECT_EQ(journal(JournalKind::kPlan).size(), 2u);
  EXPECT_EQ(journal(JournalKind::kJobEnd).size(), 12u);
}

TEST_F(CoordinatorTest, ALaunchIsIdempotent) {
  run_whole_chain("chain");
  const auto service = start_leader("two");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  const auto again = client.launch(small_sweep("chain"));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->jobs, 4);
  EXPECT_EQ(again->enqueued, 0);
  EXPECT_EQ(again->known, 4);

  FrozenSweep changed = small_sweep("chain");
  changed.sweep.turns = 3;
  const auto conflict = client.launch(changed);
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.status().code(), ErrorCode::kConflict);
  EXPECT_THAT(conflict.status().message(), ::testing::HasSubstr("chain"));
  EXPECT_EQ(state("chain").phase, "done");
  EXPECT_EQ(journal(JournalKind::kSweep).size(), 1u);
}

TEST_F(CoordinatorTest, AWipedRedisNeitherRepeatsFinishedWorkNorAdmitsAChangedSweep) {
  run_whole_chain("chain");
  ASSERT_TRUE(redis_->call({"FLUSHALL"}).ok());
  const auto service = start_leader("two");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  FrozenSweep changed = small_sweep("chain");
  changed.sweep.turns = 3;
  const auto conflict = client.launch(changed);
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.status().code(), ErrorCode::kConflict);
  const auto again = client.launch(small_sweep("chain"));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->enqueued, 0);
  EXPECT_TRUE(reaches("chain", "done"));
}

TEST_F(CoordinatorTest, JobsThatRedisLostAreEnqueuedAgain) {
  const auto service = start_leader("one");
  Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  const auto launched = client.launch(small_sweep("chain"));
  ASSERT_TRUE(launched.ok());
  EXPECT_EQ(launched->enqueued, 4);
  ASSERT_TRUE(redis_->call({"FLUSHALL"}).ok());
  // The lead is lost with the data and taken again; nobody launches anew.
  const auto worker_redis = server_.connect();
  ASSERT_TRUE(eventually([&] { return Registry(*redis_).get_sweep("chain").ok(); }, kLimit));
  const FakeWorker worker(*worker_redis, client.store(), kAllKinds);
  EXPECT_TRUE(reaches("chain", "done")) << state("chain").phase << " " << state("chain").error;
}

TEST_F(CoordinatorTest, AStandbyTakesOverWhenTheLeaderResigns) {
  auto first = start_leader("first");
  const auto second = start("second");
  Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  ASSERT_TRUE(client.launch(small_sweep("chain")).ok());
  EXPECT_FALSE(second->leading());
  const auto before = Registry(*redis_).leader();
  ASSERT_TRUE(before.ok());

  first->stop();
  ASSERT_TRUE(eventually([&] { return second->leading(); }, kLimit));
  const auto after = Registry(*redis_).leader();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->coordinator, "second");
  EXPECT_GT(after->epoch, before->epoch);

  const auto worker_redis = server_.connect();
  const FakeWorker worker(*worker_redis, client.store(), kAllKinds);
  EXPECT_TRUE(reaches("chain", "done")) << state("chain").phase << " " << state("chain").error;
}

TEST_F(CoordinatorTest, AnswersWhoWaitsForAnEvaluation) {
  const auto service = start_leader("one");
  Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  FrozenSweep sweep = small_sweep("evaluation");
  sweep.recipe.reset();
  sweep.sweep.recipe.clear();
  sweep.models.clear();
  sweep.packs.clear();
  sweep.problems.resize(1);
  sweep.sweep.models.clear();
  sweep.sweep.packs.clear();
  sweep.sweep.samples = 1;
  sweep.evaluate_source = sha256("the kernel");
  const auto refused = client.launch(sweep);  // its kernel is not in the store yet
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalid);

  ASSERT_TRUE(client.store().put("the kernel").ok());
  const auto launched = client.launch(sweep);
  ASSERT_TRUE(launched.ok()) << launched.status().to_string();
  ASSERT_EQ(launched->job_ids.size(), 1u);
  const auto worker_redis = server_.connect();
  const FakeWorker worker(*worker_redis, client.store(), kAllKinds);
  const JobRef job{"evaluation", launched->job_ids[0]};
  const auto result = client.ask<JobRef, JobResult>(MessageType::kAwaitJob, job);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  const auto turn = decode<TurnRecord>(result->turn);
  const auto end = decode<JobEndRecord>(result->end);
  ASSERT_TRUE(turn.ok() && end.ok());
  EXPECT_EQ(turn->status, TurnStatus::kCorrect);
  EXPECT_EQ(end->axes.job, job.job);
  EXPECT_TRUE(reaches("evaluation", "done"));
  const auto unknown = client.ask<JobRef, JobResult>(MessageType::kAwaitJob, JobRef{"nothing", "x"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), ErrorCode::kNotFound);
}

TEST_F(CoordinatorTest, AJobThatKillsItsWorkersEndsDeadAndTheChainGoesOn) {
  options_.retry.max_crash = 0;
  const auto service = start_leader("one");
  auto profiler = std::make_unique<Peer>(server_.connect(), PeerRole::kProfiler, "profiler");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  ASSERT_TRUE(client.launch(small_sweep("chain")).ok());
  JobQueue queue(*redis_);
  const std::vector<Lane> lanes = {Lane{"student", "cpu"}};
  std::string victim;
  ASSERT_TRUE(eventually(
      [&] {
        const auto claimed = queue.claim(lanes, 1, "doomed", std::chrono::milliseconds(1));
        if (!claimed.ok() || claimed->empty()) return false;
        victim = (*claimed)[0].lease.job;
        return true;
      },
      kLimit));
  const auto dead_end = [&]() -> std::optional<JobEndRecord> {
    for (const JournalRecord& record : journal(JournalKind::kJobEnd))
      if (const auto end = decode<JobEndRecord>(record.data); end.ok() && end->outcome == JobOutcome::kDead)
        return *end;
    return std::nullopt;
  };
  ASSERT_TRUE(eventually([&] { return dead_end().has_value(); }, kLimit));
  EXPECT_EQ(dead_end()->axes.job, victim);
  EXPECT_EQ(dead_end()->axes.sweep, "chain");
  EXPECT_THAT(dead_end()->error, ::testing::HasSubstr("doomed"));
  const auto worker_redis = server_.connect();
  const FakeWorker worker(*worker_redis, client.store(), kAllKinds);
  ASSERT_TRUE(reaches("chain", "done"));
  const std::string jsonl = rows("chain");
  EXPECT_EQ(std::count(jsonl.begin(), jsonl.end(), '\n'), 3);
  EXPECT_EQ(queue.dead_jobs(lanes[0], 10)->size(), 1u);  // still there for people to look at
}

TEST_F(CoordinatorTest, LanesAreParkedWhileNoProfilerServesThem) {
  const auto service = start_leader("one");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  ASSERT_TRUE(client.launch(small_sweep("chain")).ok());
  const auto parked_reason = [&]() -> std::string {
    const auto counts = JobQueue(*redis_).counts();
    if (!counts.ok() || counts->empty()) return "unknown";
    return (*counts)[0].parked ? (*counts)[0].parked_reason : "";
  };
  ASSERT_TRUE(eventually([&] { return parked_reason().find("cpu") != std::string::npos; }, kLimit))
      << parked_reason();
  {
    Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
    ASSERT_TRUE(eventually([&] { return parked_reason().empty(); }, kLimit)) << parked_reason();
    const auto profilers = Registry(*redis_).profilers(60000);
    ASSERT_TRUE(profilers.ok());
    ASSERT_EQ(profilers->size(), 1u);
    EXPECT_EQ((*profilers)[0].device, "a processor");
  }
  EXPECT_TRUE(eventually([&] { return !parked_reason().empty(); }, kLimit));
}

TEST_F(CoordinatorTest, ClaimsStopWhileTheDiskIsNearlyFull) {
  options_.min_free_bytes = uint64_t{1} << 62;
  const auto service = start_leader("one");
  Peer profiler(server_.connect(), PeerRole::kProfiler, "profiler");
  Peer client(server_.connect(), PeerRole::kClient, "client");
  ASSERT_TRUE(client.launch(small_sweep("chain")).ok());
  ASSERT_TRUE(eventually(
      [&] {
        const auto counts = JobQueue(*redis_).counts();
        return counts.ok() && !counts->empty() &&
               (*counts)[0].parked_reason.find("disk") != std::string::npos;
      },
      kLimit));
}

}  // namespace
}  // namespace fixit::testing

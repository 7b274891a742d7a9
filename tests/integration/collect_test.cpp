// The coordinator's parts one by one over a real Redis: what reaches the journal, once; what a reaper may
// take.
#include <gtest/gtest.h>

#include "coordinator/collect/collector.h"
#include "coordinator/collect/leadership.h"
#include "coordinator/collect/reaper.h"
#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"
#include "tests/support/temporary_folder.h"

namespace fixit::testing {
namespace {

using std::chrono::milliseconds;

// A store whose disk can be told to fail.
class FragileStore : public BlobStore {
 public:
  Result<BlobHash> put(std::string_view bytes) override { return inner_->put(bytes); }
  Result<std::string> get(const BlobHash& hash) override { return inner_->get(hash); }
  bool contains(const BlobHash& hash) override { return inner_->contains(hash); }
  Status bind(const std::string& name, const BlobHash& hash) override { return inner_->bind(name, hash); }
  Result<std::optional<BlobHash>> lookup(const std::string& name) override { return inner_->lookup(name); }
  Status sync() override { return full ? Status(ErrorCode::kFull, "no space left") : Status(); }
  bool full = false;

 private:
  std::unique_ptr<BlobStore> inner_ = make_memory_store();
};

class CollectTest : public ::testing::Test {
 protected:
  CollectTest() {
    auto ledger = Ledger::open(journal_.path(), 1, store_, Clock::system());
    EXPECT_TRUE(ledger.ok()) << ledger.status().to_string();
    ledger_ = *std::move(ledger);
  }

  JobAxes axes(const std::string& job) {
    JobAxes axes;
    axes.sweep = "sweep";
    axes.job = job;
    return axes;
  }
  void enqueue(const std::vector<std::string>& ids) {
    std::vector<NewJob> jobs;
    for (const std::string& id : ids) jobs.push_back({id, encode(JobPayload{})});
    ASSERT_TRUE(queue_.enqueue(lane_, "sweep", 5, jobs).ok());
  }
  Lease claim(milliseconds term) {
    const auto claimed = queue_.claim(std::span(&lane_, 1), 1, "worker", term);
    EXPECT_TRUE(claimed.ok() && claimed->size() == 1);
    return claimed.ok() && !claimed->empty() ? (*claimed)[0].lease : Lease{};
  }
  LeaseState heartbeat(const Lease& lease) {
    const auto states = queue_.heartbeat(std::span(&lease, 1), milliseconds(60000));
    EXPECT_TRUE(states.ok());
    return states.ok() ? (*states)[0] : LeaseState::kLost;
  }
  // A job with one turn, finished.
  void finish_one(const std::string& id) {
    enqueue({id});
    const Lease lease = claim(milliseconds(60000));
    TurnRecord turn;
    turn.axes = axes(lease.job);
    turn.status = TurnStatus::kCorrect;
    JobEndRecord end;
    end.axes = axes(lease.job);
    const std::vector<JobEvent> events = {{EventKind::kTurn, encode(turn)},
                                          {EventKind::kJobEnd, encode(end)}};
    ASSERT_TRUE(queue_.finish(lease, events).ok());
  }
  size_t journaled() {
    size_t count = 0;
    EXPECT_TRUE(read_journal(journal_.path(), [&](const JournalRecord&) {
                  ++count;
                  return true;
                }).ok());
    return count;
  }
  std::vector<StreamedEvent> events() {
    const auto events = queue_.read_events(lane_, "0", 100);
    EXPECT_TRUE(events.ok());
    return events.ok() ? *events : std::vector<StreamedEvent>();
  }
  Collector collector() { return Collector(queue_, registry_, *ledger_, Clock::system(), {}); }
  Reaper reaper(int64_t lease_ms) {
    Reaper::Options options;
    options.lease_ms = lease_ms;
    return Reaper(*redis_, queue_, registry_, *ledger_, Clock::system(), std::move(options));
  }
  void wait_past(milliseconds term) {
    const int64_t until = Clock::system().steady_ms() + term.count();
    ASSERT_TRUE(eventually([&] { return Clock::system().steady_ms() > until; }));
  }

  PrivateRedis server_;
  TemporaryFolder journal_;
  FragileStore store_;
  std::unique_ptr<Redis> redis_ = server_.connect();
  JobQueue queue_{*redis_};
  Registry registry_{*redis_};
  std::unique_ptr<Ledger> ledger_;
  const Lane lane_{"student", "cpu"};
};

TEST_F(CollectTest, JournalsEventsAndLetsRedisForgetThem) {
  finish_one("a");
  finish_one("b");
  EXPECT_EQ(events().size(), 4u);
  Collector collecting = collector();
  collecting.tick();
  EXPECT_EQ(journaled(), 4u);
  EXPECT_TRUE(events().empty());
  const std::vector<std::string> ids = {"a", "b"};
  EXPECT_TRUE(queue_.inspect(lane_, ids)->empty());
  collecting.tick();
  EXPECT_EQ(journaled(), 4u);
}

TEST_F(CollectTest, EventsThatAFormerLeaderJournaledAreForgottenButNotJournaledAgain) {
  finish_one("a");
  collector().tick();
  finish_one("b");
  // The former leader journals, and dies before Redis forgets.
  std::vector<JournalRecord> records;
  for (const StreamedEvent& streamed : events()) {
    JournalRecord record;
    record.kind = streamed.event.kind == EventKind::kTurn ? JournalKind::kTurn : JournalKind::kJobEnd;
    record.sweep = "sweep";
    record.data = streamed.event.data;
    record.lane = lane_.name();
    record.position = streamed.position;
    records.push_back(record);
  }
  ASSERT_EQ(records.size(), 2u);
  ASSERT_TRUE(ledger_->write(records).ok());
  ledger_.reset();
  auto reopened = Ledger::open(journal_.path(), 2, store_, Clock::system());
  ASSERT_TRUE(reopened.ok()) << reopened.status().to_string();
  ledger_ = *std::move(reopened);
  EXPECT_EQ(ledger_->position(lane_.name()), records.back().position);

  Collector collecting = collector();
  collecting.tick();
  EXPECT_EQ(journaled(), 4u);
  EXPECT_TRUE(events().empty());
  const std::vector<std::string> ids = {"b"};
  EXPECT_TRUE(queue_.inspect(lane_, ids)->empty());
}

TEST_F(CollectTest, NothingIsForgottenWhileTheDiskIsFullAndNothingIsLostAfterwards) {
  finish_one("a");
  Collector collecting = collector();
  store_.full = true;
  collecting.tick();
  collecting.tick();
  EXPECT_EQ(journaled(), 0u);
  EXPECT_EQ(events().size(), 2u);
  EXPECT_NE(ledger_->fault().find("no space left"), std::string::npos);
  store_.full = false;
  collecting.tick();
  EXPECT_EQ(journaled(), 2u);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(ledger_->fault(), "");
}

TEST_F(CollectTest, AClosedLedgerTakesNothing) {
  finish_one("a");
  ledger_->close();
  collector().tick();
  EXPECT_EQ(journaled(), 0u);
  EXPECT_EQ(events().size(), 2u);
}

TEST_F(CollectTest, ALeaseThatRanOutIsTakenBack) {
  Reaper reaping = reaper(60000);
  reaping.tick();  // the first tick would grant a fresh term
  enqueue({"a"});
  const Lease lease = claim(milliseconds(20));
  wait_past(milliseconds(40));
  reaping.tick();
  EXPECT_EQ(heartbeat(lease), LeaseState::kLost);
}

TEST_F(CollectTest, AReaperThatBeginsGrantsAFreshTermFirst) {
  enqueue({"a"});
  const Lease lease = claim(milliseconds(20));
  wait_past(milliseconds(40));
  reaper(60000).tick();
  EXPECT_EQ(heartbeat(lease), LeaseState::kKept);
}

TEST_F(CollectTest, AfterAnOutageOfRedisLeasesGetAFreshTermBeforeAnyIsTakenBack) {
  Reaper reaping = reaper(60000);
  reaping.tick();
  enqueue({"a"});
  const Lease lease = claim(milliseconds(20));
  server_.kill();
  reaping.tick();
  wait_past(milliseconds(40));
  server_.start();
  ASSERT_TRUE(eventually([&] { return redis_->call({"PING"}).ok(); }));
  reaping.tick();
  EXPECT_EQ(heartbeat(lease), LeaseState::kKept);
}

TEST_F(CollectTest, ALeaderThatCannotRenewStopsWithItsTerm) {
  const auto lead_redis = server_.connect(200);
  auto leadership = Leadership::take(*lead_redis, {"one", 400, 50}, Clock::system());
  ASSERT_TRUE(leadership.ok() && *leadership);
  EXPECT_TRUE((*leadership)->held());
  auto rival = Leadership::take(*redis_, {"two", 400, 50}, Clock::system());
  ASSERT_TRUE(rival.ok());
  EXPECT_EQ(*rival, nullptr);
  server_.kill();
  EXPECT_TRUE(eventually([&] { return !(*leadership)->held(); }));
}

TEST(StreamPosition, OrdersByTimeThenByNumber) {
  EXPECT_TRUE(position_after("10-0", "9-5"));
  EXPECT_TRUE(position_after("10-10", "10-9"));
  EXPECT_FALSE(position_after("10-9", "10-9"));
  EXPECT_TRUE(position_after("1-0", ""));
  EXPECT_FALSE(position_after("", ""));
}

TEST(LaneGate, ParksForFullQueuesUntilTheyAreHalfEmpty) {
  LaneGate gate(100);
  const Lane lane{"student", "cpu"};
  BrokerView view;
  EXPECT_NE(gate.reason(lane), "");  // nobody was seen yet
  EXPECT_EQ(gate.reason(Lane{"teacher", "none"}), "");
  view.profilers.resize(1);
  view.profilers[0].capability.gpu = "cpu";
  const auto parked_at = [&](int queued) {
    view.queued["cpu"] = queued;
    gate.see(view);
    return !gate.reason(lane).empty();
  };
  EXPECT_FALSE(parked_at(75));
  EXPECT_TRUE(parked_at(76));
  EXPECT_TRUE(parked_at(51));
  EXPECT_FALSE(parked_at(50));
  EXPECT_FALSE(parked_at(75));
  gate.set_write_fault("the disk is full");
  EXPECT_EQ(gate.reason(Lane{"teacher", "none"}), "the disk is full");
}

}  // namespace
}  // namespace fixit::testing

// The engine's promises, on a real Redis. Model, compiler and profiler are stand-ins (worker_world.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/worker_world.h"
#include "worker/engine/reply_bank.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using fixit::testing::eventually;

constexpr const char* kDefinition = R"({"name": "scale", "op_type": "scale",
  "axes": {"N": {"type": "const", "value": 8}},
  "inputs": {"X": {"shape": ["N"], "dtype": "float32"}}, "outputs": {"Y": {"shape": ["N"], "dtype": "float32"}},
  "reference": "def run(X):\n    return X\n"})";

std::string fenced(const std::string& comment) {
  return "Here it is.\n\n```cpp\nextern \"C\" void run(const float* X, float* Y) {}  // " + comment +
         "\n```\n";
}

ChatReply reply(const std::string& text, const std::string& finish_reason = "stop") {
  ChatReply reply;
  reply.text = text;
  reply.finish_reason = finish_reason;
  reply.usage.prompt = 100;
  reply.usage.completion = 10;
  reply.cost_usd = 0.5;
  return reply;
}

Verdict verdict(TurnStatus status, std::optional<double> speedup = std::nullopt) {
  Verdict verdict;
  verdict.status = status;
  verdict.speedup = speedup;
  WorkloadVerdict workload;
  workload.uuid = "one";
  workload.status = status;
  workload.speedup = speedup;
  verdict.workloads.push_back(workload);
  return verdict;
}

class WorkerEngineTest : public ::testing::Test {
 protected:
  WorkerEngineTest() {
    sweep_.sweep.name = "s";
    sweep_.sweep.turns = 3;
    sweep_.sweep.target_speedup = 1.2;
    FrozenProblem problem;
    problem.name = "scale";
    problem.definition = kDefinition;
    problem.workloads.push_back(
        {"one", R"({"uuid": "one", "axes": {}, "inputs": {"X": {"type": "random"}}})", {}});
    sweep_.problems.push_back(problem);
    sweep_.gpus.push_back({});
    sweep_.gpus[0].name = "cpu";
    FrozenPack pack;
    pack.name = "base";
    pack.text = "You write kernels.";
    pack.headers = {{"tiles.h", "// tiles\n"}};
    pack.hash = sha256("base");
    sweep_.packs.push_back(pack);
    for (const char* name : {"m", "teacher"}) {
      FrozenModel model;
      model.config.name = name;
      sweep_.models.push_back(model);
    }
    RecipeConfig recipe;
    recipe.name = "r";
    recipe.repair.model = "teacher";
    recipe.repair.turns = 2;
    recipe.repair.target_speedup = 0.15;
    recipe.rationale.model = "teacher";
    recipe.rationale.min_chars = 20;
    sweep_.recipe = recipe;

    model_.rule = [this](const ChatRequest&) -> ChatOutcome {
      return reply(fenced("call " + std::to_string(model_.count())));
    };
    compiler_.rule = [this](const CompileJob& job) {
      CompileRecord record;
      record.status = TurnStatus::kCorrect;
      record.key = sha256(job.source);
      record.artifact = store_->put("object of " + job.source).value();
      record.log = store_->put("").value();
      return record;
    };
    profiler_.rule = [](const ProfileRequest&) -> Result<Verdict> {
      return verdict(TurnStatus::kIncorrectNumerical);
    };
  }

  JobPayload rollout() const {
    JobPayload payload;
    payload.problem = payload.model = payload.gpu = payload.pack = 0;
    return payload;
  }
  std::string enqueue(const JobPayload& payload, const Lane& lane) {
    EXPECT_TRUE(registry_.put_sweep(sweep_).ok());
    const std::string id = "job" + std::to_string(++jobs_);
    const NewJob job{id, encode(payload)};
    EXPECT_TRUE(queue_.enqueue(lane, "s", 5, {&job, 1}).ok());
    return id;
  }
  std::unique_ptr<testing::RunningWorker> work(std::chrono::milliseconds lease = 3s) {
    Engine::Options options;
    options.worker.id = "worker" + std::to_string(++workers_);
    options.spool = spool_.path();
    options.lease = lease;
    options.retry.backoff_ms = 1;
    options.retry.max_backoff_ms = 5;
    return std::make_unique<testing::RunningWorker>(server_, *store_, options, model_, compiler_, profiler_);
  }

  // Each test's Redis is its own, so the log is read from its start.
  std::vector<StreamedEvent> events(EventKind kind, const Lane& lane) {
    std::vector<StreamedEvent> found;
    const auto all = queue_.read_events(lane, "0", 1000);
    for (const StreamedEvent& event : all.ok() ? *all : std::vector<StreamedEvent>())
      if (event.event.kind == kind) found.push_back(event);
    return found;
  }
  std::vector<TurnRecord> turns(const Lane& lane = {"m", "cpu"}) {
    std::vector<TurnRecord> turns;
    for (const StreamedEvent& event : events(EventKind::kTurn, lane))
      turns.push_back(decode<TurnRecord>(event.event.data).value());
    return turns;
  }
  std::vector<TurnStatus> statuses(const Lane& lane = {"m", "cpu"}) {
    std::vector<TurnStatus> statuses;
    for (const TurnRecord& turn : turns(lane)) statuses.push_back(turn.status);
    return statuses;
  }
  std::optional<JobEndRecord> end(const Lane& lane = {"m", "cpu"}) {
    const auto ends = events(EventKind::kJobEnd, lane);
    EXPECT_LE(ends.size(), 1u);
    if (ends.empty()) return std::nullopt;
    return decode<JobEndRecord>(ends[0].event.data).value();
  }
  JobEndRecord wait_for_end(const Lane& lane = {"m", "cpu"}) {
    if (!eventually([&] { return end(lane).has_value(); })) throw std::runtime_error("the job did not end");
    return *end(lane);
  }
  std::string text(const BlobHash& hash) {
    const auto bytes = store_->get(hash);
    return bytes.ok() ? *bytes : bytes.status().to_string();
  }
  JobView view(const std::string& job, const Lane& lane = {"m", "cpu"}) {
    const auto views = queue_.inspect(lane, {&job, 1});
    if (!views.ok() || views->empty()) throw std::runtime_error("no record of " + job);
    return views->front();
  }

  testing::PrivateRedis server_;
  std::unique_ptr<Redis> redis_ = server_.connect();
  RetryPolicy retry_{.backoff_ms = 1, .max_backoff_ms = 5};
  JobQueue queue_{*redis_, retry_};
  Registry registry_{*redis_};
  std::unique_ptr<BlobStore> store_ = make_memory_store();
  testing::TemporaryFolder spool_;
  FrozenSweep sweep_;
  testing::ModelStandIn model_;
  testing::CompilerStandIn compiler_;
  testing::ProfilerStandIn profiler_;
  const Lane lane_{"m", "cpu"};
  const Lane teacher_{"teacher", "cpu"};
  int jobs_ = 0;
  int workers_ = 0;
};

TEST_F(WorkerEngineTest, ARolloutTalksUntilTheTargetIsReached) {
  int verdicts = 0;
  profiler_.rule = [&](const ProfileRequest&) -> Result<Verdict> {
    ++verdicts;
    if (verdicts == 1) return verdict(TurnStatus::kIncorrectNumerical);
    return verdict(TurnStatus::kCorrect, verdicts == 2 ? 1.1 : 1.3);
  };
  sweep_.sweep.turns = 8;
  const std::string job = enqueue(rollout(), lane_);
  const auto worker = work();
  const JobEndRecord ended = wait_for_end();
  EXPECT_EQ(ended.outcome, JobOutcome::kTargetReached);
  EXPECT_EQ(ended.turns, 3);
  EXPECT_EQ(ended.best_speedup, 1.3);
  EXPECT_EQ(ended.axes.job, job);

  const auto records = turns();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(statuses(),
              ElementsAre(TurnStatus::kIncorrectNumerical, TurnStatus::kCorrect, TurnStatus::kCorrect));
  for (int i = 0; i < 3; ++i) {
    const TurnRecord& turn = records[static_cast<size_t>(i)];
    EXPECT_EQ(turn.turn, i);
    EXPECT_EQ(turn.axes.model, "m");
    EXPECT_EQ(turn.axes.problem, "scale");
    EXPECT_EQ(turn.axes.pack, "base");
    EXPECT_EQ(turn.axes.pack_hash, sha256("base"));
    EXPECT_THAT(text(turn.system), HasSubstr("You write kernels."));
    EXPECT_THAT(text(turn.task), HasSubstr("scale"));
    EXPECT_EQ(text(turn.reply), fenced("call " + std::to_string(i + 1)));
    EXPECT_THAT(text(turn.source), HasSubstr("call " + std::to_string(i + 1)));
    EXPECT_FALSE(text(turn.feedback).empty());
    EXPECT_EQ(turn.usage.prompt, 100);
    EXPECT_EQ(turn.cost_usd, 0.5);
    EXPECT_EQ(turn.worker, worker->id);
    ASSERT_TRUE(turn.compile && turn.verdict);
    for (const char* stage : {"generate", "compile", "profile"}) {
      ASSERT_TRUE(turn.times.contains(std::string(stage) + "_begin")) << stage;
      EXPECT_LE(turn.times.at(std::string(stage) + "_begin"), turn.times.at(std::string(stage) + "_end"));
    }
  }
  // The third request holds the first two exchanges, word for word.
  const auto requests = model_.requests();
  ASSERT_EQ(requests.size(), 3u);
  ASSERT_EQ(requests[2].messages.size(), 6u);
  EXPECT_EQ(requests[2].messages[2].content, text(records[0].reply));
  EXPECT_EQ(requests[2].messages[5].content, text(records[1].feedback));
  EXPECT_EQ(requests[1].slot, "rollout/scale/sample0/turn1");
  EXPECT_EQ(compiler_.requests()[0].headers, sweep_.packs[0].headers);
  const ProfileRequest asked = profiler_.requests()[0];
  EXPECT_EQ(asked.artifact, records[0].compile->artifact);
  EXPECT_EQ(asked.key, profile_request_key(asked));
  EXPECT_TRUE(std::filesystem::is_empty(spool_.path()));
  EXPECT_TRUE(eventually([&] { return worker->engine->held() == 0; }));
}

TEST_F(WorkerEngineTest, FailuresBeforeTheProfilerConsumeTurnsAndAreToldToTheModel) {
  sweep_.sweep.turns = 4;
  model_.rule = [this](const ChatRequest&) -> ChatOutcome {
    if (model_.count() == 1) return reply("I would rather not.");
    if (model_.count() == 2) return reply("```cpp\nextern \"C\" void run(", "length");
    return reply(fenced(model_.count() == 3 ? "broken" : "banned"));
  };
  compiler_.rule = [this](const CompileJob& job) {
    CompileRecord record;
    const bool banned = job.source.find("banned") != std::string::npos;
    record.status = banned ? TurnStatus::kBanned : TurnStatus::kCompileError;
    record.log = store_->put("kernel.cpp:1:1: error: a very particular error\n").value();
    if (banned) record.check = "header";
    if (banned) record.evidence = "dlfcn.h: not this one";
    return record;
  };
  enqueue(rollout(), lane_);
  const auto worker = work();
  EXPECT_EQ(wait_for_end().outcome, JobOutcome::kTurnLimit);
  EXPECT_THAT(statuses(), ElementsAre(TurnStatus::kNoCode, TurnStatus::kTruncated, TurnStatus::kCompileError,
                                      TurnStatus::kBanned));
  EXPECT_EQ(profiler_.count(), 0u);
  const auto records = turns();
  EXPECT_TRUE(records[0].source.empty());
  EXPECT_EQ(records[1].finish_reason, "length");
  EXPECT_THAT(text(records[2].feedback), HasSubstr("a very particular error"));
  EXPECT_THAT(text(records[3].feedback), HasSubstr("dlfcn.h"));
  EXPECT_THAT(model_.requests()[3].messages.back().content, HasSubstr("a very particular error"));
}

TEST_F(WorkerEngineTest, ASecondWorkerGoesOnWhereTheFirstDiedWithoutPayingTwice) {
  sweep_.sweep.turns = 1;
  // In each round the worker dies with the named part in flight; calls that were answered are not repeated.
  struct Round {
    const char* during;
    std::atomic<bool>* hold;
    std::function<size_t()> count;
    size_t model_calls;
  };
  const Round rounds[] = {
      {"generate", &model_.hold, [&] { return model_.count(); }, 2},  // the call in flight, and again
      {"compile", &compiler_.hold, [&] { return compiler_.count(); }, 1},
      {"profile", &profiler_.hold, [&] { return profiler_.count(); }, 1},
  };
  size_t ended = 0;
  for (const Round& round : rounds) {
    SCOPED_TRACE(round.during);
    const size_t model_before = model_.count();
    const size_t before = round.count();
    *round.hold = true;
    const std::string job = enqueue(rollout(), lane_);
    auto first = work();
    ASSERT_TRUE(eventually([&] { return round.count() == before + 1; }));
    first->crash();
    *round.hold = false;
    ASSERT_TRUE(queue_.reclaim_worker(lane_, first->id).ok());
    const auto second = work();
    ASSERT_TRUE(eventually([&] { return events(EventKind::kJobEnd, lane_).size() == ended + 1; }));
    ++ended;
    EXPECT_EQ(model_.count() - model_before, round.model_calls);
    const auto records = turns();
    ASSERT_EQ(records.size(), ended);
    EXPECT_EQ(records.back().axes.job, job);
    EXPECT_EQ(records.back().worker, second->id);
    EXPECT_EQ(text(records.back().reply), fenced("call " + std::to_string(model_.count())));
    EXPECT_FALSE(records.back().system.empty());
  }
}

TEST_F(WorkerEngineTest, AReplyThatCameAsRedisWentIsFoundInTheStore) {
  sweep_.sweep.turns = 1;
  model_.hold = true;
  enqueue(rollout(), lane_);
  auto first = work();
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  first->cut = true;
  model_.let_go();
  const std::string slot = "reply/" + reply_key("job1", 0, model_.requests()[0]);
  ASSERT_TRUE(eventually([&] { return store_->lookup(slot).value().has_value(); }));
  first->crash();
  ASSERT_TRUE(queue_.reclaim_worker(lane_, first->id).ok());
  const auto second = work();
  wait_for_end();
  EXPECT_EQ(model_.count(), 1u);
  EXPECT_EQ(turns()[0].usage.completion, 10);
}

TEST_F(WorkerEngineTest, AReplyThatCameAsEverythingWentIsFoundInTheSpool) {
  sweep_.sweep.turns = 1;
  model_.hold = true;
  enqueue(rollout(), lane_);
  auto first = work();
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  first->cut = true;
  first->store.cut = true;
  model_.let_go();
  ASSERT_TRUE(eventually([&] { return !std::filesystem::is_empty(spool_.path()); }));
  first->crash();
  ASSERT_TRUE(queue_.reclaim_worker(lane_, first->id).ok());
  const auto second = work();
  wait_for_end();
  EXPECT_EQ(model_.count(), 1u);
  EXPECT_TRUE(eventually([&] { return std::filesystem::is_empty(spool_.path()); }));
}

TEST_F(WorkerEngineTest, InfrastructureFaultsConsumeNoTurnAndAreNeverTold) {
  sweep_.sweep.turns = 1;
  profiler_.rule = [this](const ProfileRequest&) -> Result<Verdict> {
    switch (profiler_.count()) {
      case 1:
        return verdict(TurnStatus::kInfra);
      case 2:
        return Status(ErrorCode::kUnavailable, "no profiler");
      case 3:
        return Status(ErrorCode::kFull, "queue is full");
      default:
        return verdict(TurnStatus::kIncorrectShape);
    }
  };
  const std::string job = enqueue(rollout(), lane_);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] {
    (void)queue_.reclaim(lane_, 10);  // the coordinator's part: delayed jobs become ready
    return end().has_value();
  }));
  EXPECT_THAT(statuses(), ElementsAre(TurnStatus::kIncorrectShape));
  EXPECT_EQ(profiler_.count(), 4u);
  EXPECT_EQ(model_.count(), 1u);
  EXPECT_EQ(compiler_.count(), 1u);
}

TEST_F(WorkerEngineTest, ProviderFaultsAreRetriedUnderTheirOwnBudget) {
  sweep_.sweep.turns = 1;
  model_.rule = [this](const ChatRequest&) -> ChatOutcome {
    if (model_.count() == 1) return ChatFailure{TurnStatus::kLlmTransient, "overloaded", 10};
    return reply(fenced("second"));
  };
  const std::string job = enqueue(rollout(), lane_);
  profiler_.hold = true;
  const auto worker = work();
  ASSERT_TRUE(eventually([&] {
    (void)queue_.reclaim(lane_, 10);
    return profiler_.count() == 1;
  }));
  EXPECT_EQ(view(job).provider_failures, 1);
  EXPECT_EQ(view(job).infra_failures, 0);
  profiler_.let_go();
  EXPECT_EQ(wait_for_end().turns, 1);
}

TEST_F(WorkerEngineTest, AFatalProviderErrorEndsTheJobAndSaysWhy) {
  model_.rule = [](const ChatRequest&) -> ChatOutcome {
    return ChatFailure{TurnStatus::kLlmFatal, "401: check the key", std::nullopt};
  };
  enqueue(rollout(), lane_);
  const auto worker = work();
  const JobEndRecord ended = wait_for_end();
  EXPECT_EQ(ended.outcome, JobOutcome::kLlmFatal);
  EXPECT_THAT(ended.error, HasSubstr("check the key"));
  EXPECT_EQ(ended.turns, 0);
  EXPECT_FALSE(ended.best_speedup);
}

TEST_F(WorkerEngineTest, AFullContextEndsTheJobWithItsTurnsKept) {
  model_.rule = [this](const ChatRequest&) -> ChatOutcome {
    if (model_.count() == 2) return ChatFailure{TurnStatus::kContextExhausted, "too long", std::nullopt};
    return reply(fenced("first"));
  };
  enqueue(rollout(), lane_);
  const auto worker = work();
  EXPECT_EQ(wait_for_end().outcome, JobOutcome::kContextExhausted);
  EXPECT_EQ(turns().size(), 1u);
}

TEST_F(WorkerEngineTest, AJobThatSpentTheSweepsBudgetAloneStops) {
  sweep_.sweep.budget.usd = 0.9;  // a call costs 0.5
  sweep_.sweep.turns = 8;
  enqueue(rollout(), lane_);
  const auto worker = work();
  const JobEndRecord ended = wait_for_end();
  EXPECT_EQ(ended.outcome, JobOutcome::kBudget);
  EXPECT_EQ(ended.turns, 2);
}

TEST_F(WorkerEngineTest, ALostLeaseStopsTheTrajectoryAndItsLateReplyIsBanked) {
  sweep_.sweep.turns = 1;
  model_.hold = true;
  const std::string job = enqueue(rollout(), lane_);
  const auto worker = work(600ms);
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  ASSERT_TRUE(queue_.set_paused(lane_, "s", true).ok());  // it must not come back to the same worker yet
  ASSERT_TRUE(queue_.reclaim_worker(lane_, worker->id).ok());
  ASSERT_TRUE(eventually([&] { return worker->engine->held() == 0; }));
  model_.let_go();
  const std::string name = "reply/" + reply_key(job, 0, model_.requests()[0]);
  ASSERT_TRUE(eventually([&] { return store_->lookup(name).value().has_value(); }));
  EXPECT_EQ(view(job).state, JobState::kReady);
  EXPECT_TRUE(turns().empty());
  ASSERT_TRUE(queue_.set_paused(lane_, "s", false).ok());
  wait_for_end();
  EXPECT_EQ(model_.count(), 1u);
  EXPECT_EQ(turns().size(), 1u);
}

TEST_F(WorkerEngineTest, LeasesOutliveLongCalls) {
  sweep_.sweep.turns = 1;
  model_.hold = true;
  const std::string job = enqueue(rollout(), lane_);
  const auto worker = work(300ms);
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  const int64_t until = view(job).until_ms;
  ASSERT_TRUE(eventually([&] {
    (void)queue_.reclaim(lane_, 10);
    return view(job).until_ms > until + 600;  // renewed over and over
  }));
  EXPECT_EQ(view(job).crashes, 0);
  model_.let_go();
  EXPECT_EQ(wait_for_end().turns, 1);
}

TEST_F(WorkerEngineTest, ACancelledSweepsJobEndsWithoutWaitingForItsCall) {
  model_.hold = true;
  enqueue(rollout(), lane_);
  const auto worker = work(300ms);
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  ASSERT_TRUE(queue_.set_cancelled(lane_, "s", true).ok());
  EXPECT_EQ(wait_for_end().outcome, JobOutcome::kCancelled);
  EXPECT_TRUE(eventually([&] { return worker->engine->held() == 0; }));
}

TEST_F(WorkerEngineTest, StoppingGivesWaitingJobsBackUncharged) {
  model_.hold = true;
  const std::string job = enqueue(rollout(), lane_);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return model_.count() == 1; }));
  const int64_t begin = Clock::system().steady_ms();
  worker->engine->stop();
  EXPECT_LT(Clock::system().steady_ms() - begin, 5'000);
  const JobView record = view(job);
  EXPECT_EQ(record.state, JobState::kReady);
  EXPECT_EQ(record.crashes + record.infra_failures + record.provider_failures, 0);
  model_.let_go();  // an answer after the end does nothing
}

TEST_F(WorkerEngineTest, OutagesOfStoreAndRedisDelayACommitAndLoseNothing) {
  sweep_.sweep.turns = 2;
  compiler_.hold = true;
  enqueue(rollout(), lane_);
  const auto worker = work(20s);
  ASSERT_TRUE(eventually([&] { return compiler_.count() == 1; }));
  worker->store.cut = true;
  compiler_.let_go();
  ASSERT_TRUE(eventually([&] { return worker->store.refused > 0; }));
  worker->cut = true;
  worker->store.cut = false;
  ASSERT_TRUE(eventually([&] { return worker->work->refused() > 0; }));
  worker->cut = false;
  EXPECT_EQ(wait_for_end().turns, 2);
  EXPECT_EQ(model_.count(), 2u);
  EXPECT_EQ(turns().size(), 2u);
}

TEST_F(WorkerEngineTest, ARepairShowsTheTeacherTheFailureAndUsesItsRecipesLimits) {
  JobPayload payload = rollout();
  payload.kind = JobKind::kRepair;
  payload.model = 1;
  payload.sample = 4;
  Origin origin;
  origin.failed_job = "x";
  origin.failed_turn = 2;
  origin.failed_source = store_->put("// the failed kernel\n").value();
  origin.failed_feedback = store_->put("the output was wrong").value();
  payload.origin = origin;
  profiler_.rule = [](const ProfileRequest&) -> Result<Verdict> {
    return verdict(TurnStatus::kCorrect, 0.1);
  };
  enqueue(payload, teacher_);
  const auto worker = work();
  EXPECT_EQ(wait_for_end(teacher_).outcome, JobOutcome::kTurnLimit);  // 0.1 is below 0.15
  EXPECT_EQ(model_.count(), 2u);                                      // the recipe's turns
  const ChatRequest request = model_.requests()[1];
  EXPECT_EQ(request.model.name, "teacher");
  EXPECT_EQ(request.slot, "repair/scale/sample4-turn2/turn1");
  EXPECT_THAT(request.messages[1].content, HasSubstr("the failed kernel"));
  EXPECT_THAT(request.messages[1].content, HasSubstr("the output was wrong"));
  const auto records = turns(teacher_);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].axes.kind, JobKind::kRepair);
  EXPECT_EQ(records[0].origin->failed_turn, 2);
  EXPECT_EQ(text(records[0].task), request.messages[1].content);
}

TEST_F(WorkerEngineTest, ARefusedRationaleIsAskedForOnceMore) {
  JobPayload payload = rollout();
  payload.kind = JobKind::kRationale;
  payload.model = 1;
  Origin origin;
  origin.failed_job = "x";
  origin.failed_source = store_->put("// the failed kernel\n").value();
  origin.failed_feedback = store_->put("the output was wrong").value();
  origin.repair_job = "y";
  origin.repaired_source = store_->put("// the mended kernel\n").value();
  payload.origin = origin;
  const std::string good = "I see that the loop leaves out its tail, so I will handle the rest after it.";
  model_.rule = [this, good](const ChatRequest&) -> ChatOutcome {
    return reply(model_.count() == 1 ? "short" : "<rationale>" + good + "</rationale>");
  };
  const Lane lane{"teacher", "none"};
  enqueue(payload, lane);
  const auto worker = work();
  EXPECT_EQ(wait_for_end(lane).outcome, JobOutcome::kDone);
  EXPECT_EQ(compiler_.count() + profiler_.count(), 0u);
  const auto events_found = events(EventKind::kRationale, lane);
  ASSERT_EQ(events_found.size(), 2u);
  const auto first = decode<RationaleRecord>(events_found[0].event.data).value();
  const auto second = decode<RationaleRecord>(events_found[1].event.data).value();
  EXPECT_FALSE(first.accepted);
  EXPECT_THAT(first.rule, HasSubstr("too_short"));
  EXPECT_TRUE(second.accepted) << second.rule;
  EXPECT_EQ(second.attempt, 1);
  EXPECT_EQ(text(second.text), good);
  EXPECT_THAT(text(second.request), HasSubstr("the mended kernel"));
  EXPECT_NE(first.request, second.request);
  EXPECT_EQ(model_.requests()[1].slot, "rationale/scale/sample0-turn0/turn1");
  EXPECT_EQ(second.usage.prompt, 100);
}

TEST_F(WorkerEngineTest, AnEvaluationNeedsNoModel) {
  JobPayload payload;
  payload.kind = JobKind::kEvaluate;
  payload.problem = payload.gpu = 0;
  Origin origin;
  origin.failed_source = store_->put("extern \"C\" void run() {}\n").value();
  payload.origin = origin;
  const Lane lane{"none", "cpu"};
  enqueue(payload, lane);
  const auto worker = work();
  const JobEndRecord ended = wait_for_end(lane);
  EXPECT_EQ(ended.outcome, JobOutcome::kDone);
  EXPECT_EQ(ended.turns, 1);
  EXPECT_EQ(model_.count(), 0u);
  const auto records = turns(lane);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].status, TurnStatus::kIncorrectNumerical);
  EXPECT_EQ(records[0].source, origin.failed_source);
  EXPECT_TRUE(records[0].reply.empty());
  EXPECT_TRUE(records[0].axes.model.empty());
}

TEST_F(WorkerEngineTest, ABadPayloadEndsInTheDeadLettersWithItsReason) {
  JobPayload payload = rollout();
  payload.problem = 7;
  const std::string job = enqueue(payload, lane_);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] {
    (void)queue_.reclaim(lane_, 10);
    return view(job).state == JobState::kDead;
  }));
  EXPECT_EQ(wait_for_end().outcome, JobOutcome::kDead);
  EXPECT_THAT(end()->error, HasSubstr("problem"));
  EXPECT_EQ(end()->axes.sweep, "s");
}

TEST_F(WorkerEngineTest, ManyTrajectoriesWaitAtOnceOnOneWorker) {
  sweep_.sweep.turns = 1;
  model_.hold = true;
  for (int i = 0; i < 60; ++i) enqueue(rollout(), lane_);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return model_.count() == 60; }))
      << model_.count() << " " << worker->engine->held();  // none waits for another's call
  model_.let_go();
  ASSERT_TRUE(eventually([&] { return events(EventKind::kJobEnd, lane_).size() == 60; }));
  EXPECT_EQ(turns().size(), 60u);
}

}  // namespace
}  // namespace fixit

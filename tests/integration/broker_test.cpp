#include "coordinator/broker/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/remote_store.h"
#include "core/wire/socket.h"
#include "tests/integration/broker_peers.h"

namespace fixit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ErrorReply error_of(const Result<Message>& message) {
  if (!message.ok() || message->type != MessageType::kError) return {ErrorCode::kOk, "no error"};
  return *decode<ErrorReply>(message->body);
}

class BrokerTest : public testing::Test {
 protected:
  BrokerTest() : store_(make_memory_store()) {
    options_.listen = "tcp://127.0.0.1:*";
    options_.coordinator = "test";
    options_.epoch = 1;
    options_.silence_ms = 400;
    options_.heartbeat_ms = 50;
    options_.view_ms = 10;
    options_.store = store_.get();
    options_.on_view = [this](const BrokerView& view) {
      const std::lock_guard lock(mutex_);
      view_ = view;
    };
  }

  void start() {
    auto broker = Broker::start(options_);
    ASSERT_TRUE(broker.ok()) << broker.status().to_string();
    broker_ = std::move(*broker);
    endpoint_.set(broker_->endpoint());
  }
  void stop() { broker_.reset(); }

  BrokerView view() {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  bool queued(int count) {
    return eventually([&] { return view().queued["cpu"] == count; });
  }
  // Its verdict, all the way from asking.
  Result<Verdict> judged(TestWorker& worker, TestProfiler& profiler, const ProfileRequest& request,
                         const Verdict& verdict) {
    const int before = profiler.received(request.key);
    const size_t number = worker.ask(request);
    if (!eventually([&] { return profiler.received(request.key) > before; }))
      return Status(ErrorCode::kTimeout, "the request never reached the profiler");
    profiler.judge(request.key, verdict);
    return worker.answer(number);
  }

  std::mutex mutex_;
  BrokerView view_;
  std::unique_ptr<BlobStore> store_;
  Broker::Options options_;
  Endpoint endpoint_;
  std::unique_ptr<Broker> broker_;
};

TEST_F(BrokerTest, JoinsEqualRequestsAndAnswersEachOfThem) {
  start();
  TestWorker first(endpoint_, "w1"), second(endpoint_, "w2");
  const auto request = make_request("kernel");
  const size_t a = first.ask(request), b = first.ask(request), c = second.ask(request);
  TestProfiler profiler(endpoint_, "p1");
  ASSERT_TRUE(eventually([&] { return profiler.received(request.key) == 1; }));
  ASSERT_TRUE(eventually([&] { return second.client().connected(); }));
  // Its answer says that the broker has read everything sent before.
  ASSERT_TRUE(second.client().call(MessageType::kNameGet, encode(NameRef{"x"}), {}, 5000).ok());
  profiler.judge(request.key, make_verdict(TurnStatus::kCorrect, "measured"));
  for (const auto& verdict : {first.answer(a), first.answer(b), second.answer(c)}) {
    ASSERT_TRUE(verdict.ok()) << verdict.status().to_string();
    EXPECT_EQ(verdict->evidence, "measured");
    EXPECT_EQ(verdict->request_key, request.key);
    EXPECT_FALSE(verdict->cached);
  }
  EXPECT_EQ(profiler.received(request.key), 1);
  EXPECT_TRUE(eventually([&] { return profiler.unacknowledged() == 0; }));
}

TEST_F(BrokerTest, NeverSendsMoreThanTheCredits) {
  start();
  TestProfiler profiler(endpoint_, "p1", cpu_profiler(2));
  TestWorker worker(endpoint_, "w1");
  std::vector<size_t> numbers;
  for (int i = 0; i < 6; ++i) numbers.push_back(worker.ask(make_request("kernel " + std::to_string(i))));
  ASSERT_TRUE(queued(4));
  for (int done = 0; done < 6; ++done) {
    const size_t expected = std::min(2, 6 - done);
    ASSERT_TRUE(eventually([&] { return profiler.running().size() == expected; }));
    EXPECT_EQ(profiler.running().front(), make_request("kernel " + std::to_string(done)).key)
        << "first come first served";
    profiler.judge(profiler.running().front(), make_verdict(TurnStatus::kCorrect));
    EXPECT_TRUE(worker.answer(numbers[static_cast<size_t>(done)]).ok());
    EXPECT_LE(profiler.running().size(), 2u);
  }
}

TEST_F(BrokerTest, ServesHigherPrioritiesFirst) {
  start();
  TestWorker worker(endpoint_, "w1");
  auto low = make_request("low"), high = make_request("high");
  high.priority = 9;
  worker.ask(low);
  worker.ask(high);
  ASSERT_TRUE(queued(2));
  TestProfiler profiler(endpoint_, "p1", cpu_profiler(1));
  ASSERT_TRUE(eventually([&] { return !profiler.running().empty(); }));
  EXPECT_THAT(profiler.running(), ElementsAre(high.key));
}

TEST_F(BrokerTest, DrainsAProfilerWithoutCredit) {
  start();
  TestProfiler profiler(endpoint_, "p1");
  ASSERT_TRUE(eventually([&] { return profiler.client().connected(); }));
  profiler.client().post(make_message(MessageType::kCredit, {}, Credit{0}));
  ASSERT_TRUE(profiler.client().call(MessageType::kNameGet, encode(NameRef{"x"}), {}, 5000).ok());
  TestWorker worker(endpoint_, "w1");
  const auto request = make_request("kernel");
  worker.ask(request);
  ASSERT_TRUE(queued(1));
  EXPECT_EQ(profiler.received(request.key), 0);
  profiler.client().post(make_message(MessageType::kCredit, {}, Credit{1}));
  EXPECT_TRUE(eventually([&] { return profiler.received(request.key) == 1; }));
}

TEST_F(BrokerTest, GivesTheWorkOfASilentProfilerToAnotherAndServesAllWhoWait) {
  start();
  TestWorker first(endpoint_, "w1"), second(endpoint_, "w2");
  const auto request = make_request("kernel");
  RawPeer silent(broker_->endpoint());
  ASSERT_EQ(silent.hello(PeerRole::kProfiler, "silent", cpu_profiler())->type, MessageType::kWelcome);
  const size_t a = first.ask(request), b = second.ask(request);
  const auto sent = silent.receive();
  ASSERT_TRUE(sent.ok() && sent->type == MessageType::kProfile);
  TestProfiler healthy(endpoint_, "healthy");
  ASSERT_TRUE(eventually([&] { return healthy.received(request.key) == 1; }));
  healthy.judge(request.key, make_verdict(TurnStatus::kCorrect));
  EXPECT_EQ(first.answer(a)->status, TurnStatus::kCorrect);
  EXPECT_EQ(second.answer(b)->status, TurnStatus::kCorrect);
}

TEST_F(BrokerTest, NoticesABrokenConnectionBeforeTheSilence) {
  options_.silence_ms = 60000;
  start();
  TestWorker worker(endpoint_, "w1");
  const auto request = make_request("kernel");
  auto killed = std::make_unique<RawPeer>(broker_->endpoint());
  ASSERT_TRUE(killed->hello(PeerRole::kProfiler, "killed", cpu_profiler()).ok());
  worker.ask(request);
  ASSERT_TRUE(killed->receive().ok());
  killed.reset();
  TestProfiler healthy(endpoint_, "healthy");
  EXPECT_TRUE(eventually([&] { return healthy.received(request.key) == 1; }));
}

TEST_F(BrokerTest, EndsARequestThatTookTooManyProfilersWithIt) {
  start();
  TestWorker worker(endpoint_, "w1");
  const auto deadly = make_request("deadly"), staged = make_request("staged");
  const size_t number = worker.ask(deadly), other = worker.ask(staged);
  ASSERT_TRUE(queued(2));
  for (const char* id : {"dead-1", "dead-2"}) {
    RawPeer profiler(broker_->endpoint());
    ASSERT_TRUE(profiler.hello(PeerRole::kProfiler, id, cpu_profiler()).ok());
    ASSERT_EQ(decode<ProfileRequest>(profiler.receive()->body)->key, deadly.key);
    ASSERT_EQ(decode<ProfileRequest>(profiler.receive()->body)->key, staged.key);
  }
  const auto verdict = worker.answer(number);
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->status, TurnStatus::kInfra);
  EXPECT_EQ(verdict->check, "profiler died");
  EXPECT_THAT(verdict->evidence, HasSubstr("dead-1"));
  EXPECT_THAT(verdict->evidence, HasSubstr("dead-2"));
  TestProfiler healthy(endpoint_, "healthy");
  ASSERT_TRUE(eventually([&] { return healthy.received(staged.key) == 1; }))
      << "what was staged behind is not blamed";
  healthy.judge(staged.key, make_verdict(TurnStatus::kCorrect));
  EXPECT_EQ(worker.answer(other)->status, TurnStatus::kCorrect);
  EXPECT_EQ(healthy.received(deadly.key), 0);
}

TEST_F(BrokerTest, HandsWorkOnAtOnceWhenAProfilerSaysGoodbye) {
  options_.silence_ms = 60000;
  start();
  TestWorker worker(endpoint_, "w1");
  const auto request = make_request("kernel");
  auto leaving = std::make_unique<TestProfiler>(endpoint_, "leaving");
  worker.ask(request);
  ASSERT_TRUE(eventually([&] { return leaving->received(request.key) == 1; }));
  TestProfiler other(endpoint_, "other");
  leaving.reset();
  EXPECT_TRUE(eventually([&] { return other.received(request.key) == 1; }));
}

TEST_F(BrokerTest, AnswersFromTheCacheUnlessAskedToMeasure) {
  start();
  TestWorker worker(endpoint_, "w1");
  TestProfiler profiler(endpoint_, "p1");
  auto request = make_request("kernel");
  ASSERT_TRUE(judged(worker, profiler, request, make_verdict(TurnStatus::kCorrect, "first")).ok());
  const auto cached = worker.answer(worker.ask(request));
  ASSERT_TRUE(cached.ok());
  EXPECT_TRUE(cached->cached);
  EXPECT_EQ(cached->evidence, "first");
  EXPECT_EQ(profiler.received(request.key), 1);
  request.fresh = true;
  const auto fresh = judged(worker, profiler, request, make_verdict(TurnStatus::kCorrect, "second"));
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh->evidence, "second");
  EXPECT_FALSE(fresh->cached);
}

TEST_F(BrokerTest, KeepsVerdictsOfEachEvaluatorApart) {
  start();
  TestWorker worker(endpoint_, "w1");
  const auto request = make_request("kernel");
  {
    TestProfiler profiler(endpoint_, "p1");
    ASSERT_TRUE(judged(worker, profiler, request, make_verdict(TurnStatus::kCorrect)).ok());
  }
  ASSERT_TRUE(eventually([&] { return view().profilers.empty(); }));
  auto newer = cpu_profiler();
  newer.evaluator = "evaluator 2";
  TestProfiler profiler(endpoint_, "p2", newer);
  ASSERT_TRUE(eventually([&] { return !view().profilers.empty(); }));
  EXPECT_TRUE(judged(worker, profiler, request, make_verdict(TurnStatus::kIncorrectShape)).ok());
  EXPECT_EQ(profiler.received(request.key), 1);
}

TEST_F(BrokerTest, NeverCachesInfraOrNoisyVerdicts) {
  start();
  TestWorker worker(endpoint_, "w1");
  TestProfiler profiler(endpoint_, "p1");
  const auto request = make_request("kernel");
  EXPECT_EQ(judged(worker, profiler, request, make_verdict(TurnStatus::kInfra))->status, TurnStatus::kInfra);
  Verdict noisy = make_verdict(TurnStatus::kCorrect);
  noisy.noisy = true;
  EXPECT_TRUE(judged(worker, profiler, request, noisy)->noisy);
  EXPECT_FALSE(judged(worker, profiler, request, make_verdict(TurnStatus::kCorrect))->noisy);
  EXPECT_EQ(profiler.received(request.key), 3);
}

TEST_F(BrokerTest, RefusesWhatTheQueueCannotHold) {
  options_.max_queue = 2;
  start();
  TestWorker worker(endpoint_, "w1");
  worker.ask(make_request("1"));
  worker.ask(make_request("2"));
  const auto refused = worker.answer(worker.ask(make_request("3")));
  EXPECT_EQ(refused.status().code(), ErrorCode::kFull);
  EXPECT_THAT(refused.status().message(), HasSubstr("cpu"));
  const size_t joined = worker.ask(make_request("1"));
  const size_t elsewhere = worker.ask(make_request("3", "h100"));
  ASSERT_TRUE(eventually([&] { return view().queued["h100"] == 1; })) << "each kind has its own bound";
  EXPECT_EQ(worker.answers(joined) + worker.answers(elsewhere), 0u);
}

TEST_F(BrokerTest, EndsWorkNotBegunByItsDeadline) {
  start();
  TestWorker worker(endpoint_, "w1");
  auto request = make_request("kernel");
  request.deadline_ms = Clock::system().unix_ms() + 100;
  const auto verdict = worker.answer(worker.ask(request));
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->status, TurnStatus::kInfra);
  EXPECT_EQ(verdict->check, "deadline");
  TestProfiler profiler(endpoint_, "p1");
  ASSERT_TRUE(eventually([&] { return !view().profilers.empty(); }));
  EXPECT_EQ(profiler.received(request.key), 0);
}

TEST_F(BrokerTest, CancelsOnlyWhatNobodyElseWaitsFor) {
  start();
  TestWorker first(endpoint_, "w1"), second(endpoint_, "w2");
  TestProfiler profiler(endpoint_, "p1", cpu_profiler(1));
  const auto request = make_request("kernel");
  const size_t a = first.ask(request);
  ASSERT_TRUE(eventually([&] { return profiler.received(request.key) == 1; }));
  const size_t b = second.ask(request);
  ASSERT_TRUE(second.client().call(MessageType::kNameGet, encode(NameRef{"x"}), {}, 5000).ok());
  first.client().post(make_message(MessageType::kCancel, {}, ProfileRef{request.key, "no longer wanted"}));
  ASSERT_TRUE(first.client().call(MessageType::kNameGet, encode(NameRef{"x"}), {}, 5000).ok());
  EXPECT_TRUE(profiler.cancelled().empty()) << "the other worker still waits";
  second.client().post(make_message(MessageType::kCancel, {}, ProfileRef{request.key, "no longer wanted"}));
  ASSERT_TRUE(eventually([&] { return profiler.cancelled().size() == 1; }));
  EXPECT_EQ(first.answer(a).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(second.answer(b).status().code(), ErrorCode::kCancelled);
  // Asked for again while the profiler is still ending it: its late INFRA is not the new request's answer.
  const size_t again = first.ask(request);
  ASSERT_TRUE(queued(1));
  profiler.judge(request.key, make_verdict(TurnStatus::kInfra, "cancelled"));
  ASSERT_TRUE(eventually([&] { return profiler.received(request.key) == 2; }));
  profiler.judge(request.key, make_verdict(TurnStatus::kCorrect));
  EXPECT_EQ(first.answer(again)->status, TurnStatus::kCorrect);
}

TEST_F(BrokerTest, LosesNothingWhenItIsStartedAgain) {
  start();
  const std::string address = broker_->endpoint();
  TestWorker worker(endpoint_, "w1");
  TestProfiler profiler(endpoint_, "p1");
  const auto running = make_request("running"), waiting = make_request("waiting"),
             third = make_request("third");
  const size_t a = worker.ask(running), b = worker.ask(waiting), c = worker.ask(third);
  ASSERT_TRUE(eventually([&] { return profiler.running().size() == 2; }));
  for (const bool same_endpoint : {true, false}) {
    stop();
    if (!same_endpoint) endpoint_.set("");
    ASSERT_TRUE(eventually([&] { return !worker.client().connected() && !profiler.client().connected(); }));
    options_.listen = same_endpoint ? address : "tcp://127.0.0.1:*";
    start();
    ASSERT_TRUE(eventually([&] { return worker.client().connected() && profiler.client().connected(); }));
    EXPECT_EQ(worker.answers(a) + worker.answers(b) + worker.answers(c), 0u);
  }
  ASSERT_TRUE(queued(1));
  profiler.judge(running.key, make_verdict(TurnStatus::kCorrect, "running"));
  EXPECT_EQ(worker.answer(a)->evidence, "running");
  ASSERT_TRUE(eventually([&] { return profiler.received(third.key) == 1; }));
  profiler.judge(waiting.key, make_verdict(TurnStatus::kCorrect, "waiting"));
  profiler.judge(third.key, make_verdict(TurnStatus::kCorrect, "third"));
  EXPECT_EQ(worker.answer(b)->evidence, "waiting");
  EXPECT_EQ(worker.answer(c)->evidence, "third");
}

TEST_F(BrokerTest, TakesAVerdictThatNobodyWaitsFor) {
  start();
  const auto request = make_request("kernel");
  TestProfiler profiler(endpoint_, "p1");
  ASSERT_TRUE(eventually([&] { return profiler.client().connected(); }));
  profiler.judge(request.key, make_verdict(TurnStatus::kCorrect, "from before"));
  ASSERT_TRUE(eventually([&] { return profiler.unacknowledged() == 0; }));
  TestWorker worker(endpoint_, "w1");
  const auto verdict = worker.answer(worker.ask(request));
  ASSERT_TRUE(verdict.ok());
  EXPECT_TRUE(verdict->cached);
  EXPECT_EQ(verdict->evidence, "from before");
}

TEST_F(BrokerTest, CarriesBlobsAndNames) {
  start();
  TestWorker worker(endpoint_, "w1");
  auto remote = make_remote_store(worker.client(), 10000, 1 << 20);
  const std::string large = std::string(3 << 20, 'x') + std::string("\0\xff", 2);
  const auto hash = remote->put(large), small = remote->put("small"), empty = remote->put("");
  ASSERT_TRUE(hash.ok() && small.ok() && empty.ok());
  EXPECT_EQ(*store_->get(*hash), large);
  EXPECT_EQ(*remote->get(*hash), large);
  EXPECT_EQ(*remote->get(*empty), "");
  EXPECT_TRUE(remote->contains(*hash));
  EXPECT_FALSE(remote->contains(sha256("absent")));
  EXPECT_EQ(remote->get(sha256("absent")).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(remote->bind("reply/1", *hash).ok());
  EXPECT_EQ(remote->bind("reply/1", *small).code(), ErrorCode::kConflict);
  EXPECT_EQ(**remote->lookup("reply/1"), *hash);
  EXPECT_FALSE(remote->lookup("reply/2")->has_value());
  EXPECT_TRUE(remote->sync().ok());
  Message wrong{MessageType::kBlobPut, {}, encode(BlobRef{sha256("claimed")}), {"sent"}};
  EXPECT_EQ(worker.client().call(wrong.type, wrong.body, wrong.blobs, 5000).status().code(),
            ErrorCode::kCorrupt);
  EXPECT_FALSE(store_->contains(sha256("claimed")));
}

TEST_F(BrokerTest, LaunchesAndWaitsForJobs) {
  options_.launch = [](const LaunchRequest& request) -> Result<Launched> {
    if (request.sweep.sweep.name == "bad") return Status(ErrorCode::kConflict, "launched otherwise before");
    return Launched{10, 7, 3, {}};
  };
  std::function<void(Result<JobResult>)> answer_job;
  std::mutex mutex;
  options_.await_job = [&](const JobRef&, std::function<void(Result<JobResult>)> answer) {
    const std::lock_guard lock(mutex);
    answer_job = std::move(answer);
  };
  start();
  TestWorker client(endpoint_, "c1");
  LaunchRequest launch;
  const auto launched = client.client().call(MessageType::kLaunch, encode(launch), {}, 5000);
  ASSERT_TRUE(launched.ok()) << launched.status().to_string();
  EXPECT_EQ(decode<Launched>(launched->body)->enqueued, 7);
  launch.sweep.sweep.name = "bad";
  EXPECT_EQ(client.client().call(MessageType::kLaunch, encode(launch), {}, 5000).status().code(),
            ErrorCode::kConflict);
  std::thread journal([&] {
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return answer_job != nullptr;
    }));
    answer_job(JobResult{"turn", "end"});
  });
  const auto job = client.client().call(MessageType::kAwaitJob, encode(JobRef{"s", "j"}), {}, 5000);
  journal.join();
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(decode<JobResult>(job->body)->end, "end");
  stop();
  answer_job(JobResult{"late", "late"});  // after the broker's end: dropped
}

TEST_F(BrokerTest, ListensOnThisMachineOnly) {
  options_.listen = "tcp://0.0.0.0:*";
  EXPECT_EQ(Broker::start(options_).status().code(), ErrorCode::kDenied);
  options_.listen = "tcp://127.0.0.1:*";
  start();
  options_.listen = broker_->endpoint();
  EXPECT_EQ(Broker::start(options_).status().code(), ErrorCode::kConflict);
}

TEST_F(BrokerTest, AnswersMalformedMessagesAndGoesOn) {
  start();
  RawPeer raw(broker_->endpoint());
  raw.send(std::vector<std::string>{"\xc1garbage"});
  EXPECT_EQ(error_of(raw.receive()).code, ErrorCode::kCorrupt);
  raw.send(std::vector<std::string>(1000, "x"));
  EXPECT_EQ(error_of(raw.receive()).code, ErrorCode::kCorrupt);
  raw.send(Message{MessageType::kProfile, "1", "", {}});
  EXPECT_EQ(error_of(raw.receive()).code, ErrorCode::kStale) << "no hello yet";
  raw.send(Message{MessageType::kHello, "2", "no msgpack", {}});
  EXPECT_EQ(error_of(raw.receive()).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of(raw.hello(PeerRole::kProfiler, "p1")).code, ErrorCode::kInvalid) << "no capability";
  EXPECT_EQ(error_of(raw.hello(PeerRole::kProfiler, "p1", cpu_profiler(0))).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of(raw.hello(PeerRole::kWorker, "")).code, ErrorCode::kInvalid);
  ASSERT_EQ(raw.hello(PeerRole::kWorker, "w1")->type, MessageType::kWelcome);
  for (const auto& [type, name] : EnumNames<MessageType>::values) {
    if (type == MessageType::kHello || type == MessageType::kHeartbeat || type == MessageType::kGoodbye ||
        type == MessageType::kStoreSync)
      continue;
    raw.send(Message{type, "3", "no msgpack", {}});
    const auto answer = raw.receive();
    EXPECT_NE(error_of(answer).code, ErrorCode::kOk) << name;
    EXPECT_EQ(answer->id, "3") << name;
  }
  auto forged = make_request("kernel");
  forged.definition = "another one";
  raw.send(make_message(MessageType::kProfile, "4", forged));
  EXPECT_EQ(error_of(raw.receive()).code, ErrorCode::kInvalid) << "the key is of something else";
  raw.send(make_message(MessageType::kNameGet, "5", NameRef{"x"}));
  EXPECT_EQ(raw.receive()->type, MessageType::kName) << "it still works";
}

struct OtherEnvelope {
  int version = 7;
  std::string type = "hello";
  std::string id = "9";
  FIXIT_FIELDS(version, type, id);
};

TEST_F(BrokerTest, NamesBothVersionsToAPeerOfAnother) {
  start();
  RawPeer raw(broker_->endpoint());
  raw.send(std::vector<std::string>{encode(OtherEnvelope{}), ""});
  const auto answer = raw.receive();
  EXPECT_EQ(error_of(answer).code, ErrorCode::kUnsupported);
  EXPECT_EQ(answer->id, "9");
  EXPECT_THAT(error_of(answer).message, HasSubstr("version 7"));
  EXPECT_THAT(error_of(answer).message, HasSubstr("version 1"));
}

TEST_F(BrokerTest, WithoutABrokerRequestsEndInTimeAndSayWhy) {
  auto worker = std::make_unique<TestWorker>(endpoint_, "w1");
  const auto timeout = worker->answer(worker->ask(make_request("kernel"), 150));
  EXPECT_EQ(timeout.status().code(), ErrorCode::kTimeout);
  EXPECT_THAT(timeout.status().message(), HasSubstr("no coordinator leads"));
  Result<Message> cancelled = Status(ErrorCode::kInternal, "not called");
  worker->client().request(MessageType::kNameGet, encode(NameRef{"x"}), {}, 60000,
                           [&](Result<Message> reply) { cancelled = std::move(reply); });
  worker.reset();
  EXPECT_EQ(cancelled.status().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace fixit

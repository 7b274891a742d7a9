// The profiler's loop against a real broker, with an evaluator that does what a test says.
#include "profiler/service/profiler_service.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "coordinator/broker/broker.h"
#include "core/wire/broker_client.h"

namespace fixit {
namespace {

constexpr int64_t kWaitMs = 20000;

class ScriptedEvaluator final : public Evaluator {
 public:
  using Script = std::function<Verdict(const ProfileRequest&, BlobStore&, const std::atomic<bool>&)>;
  explicit ScriptedEvaluator(Script script) : script_(std::move(script)) {
    capability_ = {"cpu", "a device", "an evaluator", "process", "seccomp", true, 2};
  }
  const ProfilerCapability& capability() const override { return capability_; }
  Verdict evaluate(const ProfileRequest& request, BlobStore& blobs,
                   const std::atomic<bool>& cancelled) override {
    return script_(request, blobs, cancelled);
  }

 private:
  ProfilerCapability capability_;
  Script script_;
};

Verdict verdict_of(TurnStatus status, std::string evidence = {}) {
  Verdict verdict;
  verdict.status = status;
  verdict.evidence = std::move(evidence);
  return verdict;
}

// Waits until the flag is set; false after kWaitMs.
bool becomes_true(const std::atomic<bool>& flag) {
  const int64_t until = Clock::system().steady_ms() + kWaitMs;
  while (!flag && Clock::system().steady_ms() < until) std::this_thread::yield();
  return flag;
}

class ProfilerServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    start_broker();
    BrokerClient::Options worker;
    worker.endpoint = [this] { return endpoint(); };
    worker.hello.role = PeerRole::kWorker;
    worker.hello.id = "worker";
    worker_ = BrokerClient::start(worker);
  }
  void TearDown() override {
    stop_ = true;
    if (service_.joinable()) service_.join();
    worker_.reset();
  }

  void start_broker() {
    Broker::Options options;
    options.listen = "tcp://127.0.0.1:*";
    options.coordinator = "test";
    options.store = store_.get();
    options.clock = &Clock::system();
    options.heartbeat_ms = 100;
    auto broker = Broker::start(std::move(options));
    ASSERT_TRUE(broker.ok()) << broker.status().to_string();
    const std::lock_guard lock(mutex_);
    broker_ = std::move(*broker);
    endpoint_ = broker_->endpoint();
  }
  Result<std::string> endpoint() {
    const std::lock_guard lock(mutex_);
    return endpoint_;
  }

  void serve(ScriptedEvaluator::Script script) {
    evaluator_ = std::make_unique<ScriptedEvaluator>(std::move(script));
    ProfilerServiceOptions options;
    options.endpoint = [this] { return endpoint(); };
    options.id = "profiler";
    options.repost_ms = 200;
    options.drain_ms = drain_ms_;
    service_ = std::thread([this, options] { serve_profiler(*evaluator_, options, stop_); });
  }

  std::future<Result<Message>> ask(const ProfileRequest& request) {
    auto promise = std::make_shared<std::promise<Result<Message>>>();
    worker_->request(MessageType::kProfile, encode(request), {}, kWaitMs,
                     [promise](Result<Message> answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }
  ProfileRequest request(const std::string& name) {
    ProfileRequest result;
    result.job = name;
    result.gpu = "cpu";
    result.artifact = *store_->put("object of " + name);
    result.compile_key = sha256(name);
    result.key = profile_request_key(result);
    return result;
  }
  static Verdict read(std::future<Result<Message>> answer) {
    const Result<Message> message = answer.get();
    if (!message.ok()) return verdict_of(TurnStatus::kPending, message.status().to_string());
    const auto reply = decode<VerdictReply>(message->body);
    return reply.ok() ? reply->verdict : verdict_of(TurnStatus::kPending, reply.status().to_string());
  }

  int64_t drain_ms_ = kWaitMs;
  std::unique_ptr<BlobStore> store_ = make_memory_store();
  std::mutex mutex_;
  std::string endpoint_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<BrokerClient> worker_;
  std::unique_ptr<ScriptedEvaluator> evaluator_;
  std::atomic<bool> stop_{false};
  std::thread service_;
};

TEST_F(ProfilerServiceTest, JudgesArtifactsOfTheCoordinatorsStore) {
  serve([](const ProfileRequest& asked, BlobStore& blobs, const std::atomic<bool>&) {
    const auto object = blobs.get(asked.artifact);
    return verdict_of(TurnStatus::kCorrect, object.ok() ? *object : object.status().to_string());
  });
  auto first = ask(request("a")), second = ask(request("b"));
  EXPECT_EQ(read(std::move(first)).evidence, "object of a");
  EXPECT_EQ(read(std::move(second)).evidence, "object of b");
}

TEST_F(ProfilerServiceTest, PassesCancellationToTheRunningEvaluation) {
  std::atomic<bool> began{false}, ended{false};
  serve([&](const ProfileRequest& asked, BlobStore&, const std::atomic<bool>& cancelled) {
    if (asked.job != "long") return verdict_of(TurnStatus::kCorrect, cancelled ? "cancelled" : "measured");
    began = true;
    ended = becomes_true(cancelled);
    return verdict_of(TurnStatus::kInfra, "cancelled");
  });
  const ProfileRequest cancelled = request("long");
  auto answer = ask(cancelled);
  ASSERT_TRUE(becomes_true(began));
  worker_->post(make_message(MessageType::kCancel, {}, ProfileRef{cancelled.key, "test"}));
  EXPECT_TRUE(becomes_true(ended));
  EXPECT_EQ(read(ask(request("next"))).evidence, "measured");
  answer.wait();
}

TEST_F(ProfilerServiceTest, FinishesWhatRunsBeforeItLeaves) {
  std::atomic<bool> began{false};
  serve([&](const ProfileRequest&, BlobStore&, const std::atomic<bool>& cancelled) {
    began = true;
    const bool stopping = becomes_true(stop_);
    return verdict_of(TurnStatus::kCorrect, stopping && !cancelled ? "finished" : "given up");
  });
  auto answer = ask(request("a"));
  ASSERT_TRUE(becomes_true(began));
  stop_ = true;
  EXPECT_EQ(read(std::move(answer)).evidence, "finished");
  service_.join();
}

TEST_F(ProfilerServiceTest, OffersAVerdictToTheNextBroker) {
  std::atomic<bool> began{false}, broker_gone{false};
  std::atomic<int> evaluations{0};
  serve([&](const ProfileRequest&, BlobStore&, const std::atomic<bool>&) {
    ++evaluations;
    began = true;
    becomes_true(broker_gone);
    return verdict_of(TurnStatus::kCorrect, "kept");
  });
  auto answer = ask(request("a"));
  ASSERT_TRUE(becomes_true(began));
  broker_.reset();
  broker_gone = true;
  start_broker();
  EXPECT_EQ(read(std::move(answer)).evidence, "kept");
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace fixit

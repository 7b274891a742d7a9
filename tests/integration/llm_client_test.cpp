// The model client against a provider that answers by script.
#include "worker/llm/llm_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>
#include <latch>
#include <sstream>

#include "tests/support/llm_server.h"

namespace fixit {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr char kKey[] = "sk-test-0123456789-abcdef";

ChatRequest request(const LlmServer& server) {
  ChatRequest chat;
  chat.model.name = "stand-in";
  chat.model.model = "vendor/stand-in";
  chat.model.base_url = server.base_url();
  chat.model.api_key_env = "FIXIT_TEST_LLM_KEY";
  chat.model.connect_timeout_s = 5;
  chat.model.first_byte_timeout_s = 5;
  chat.model.stall_timeout_s = 5;
  chat.model.total_timeout_s = 20;
  chat.model.max_attempts = 3;
  chat.messages = {{"system", "be brief"}, {"user", "hello"}};
  return chat;
}

class LlmClientTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("FIXIT_TEST_LLM_KEY", kKey, 1), 0);
    before_ = spdlog::default_logger();
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_level(spdlog::level::trace);
    spdlog::set_default_logger(logger);
  }

  void TearDown() override {
    client_.reset();
    spdlog::set_default_logger(before_);
    EXPECT_THAT(log_.str(), Not(HasSubstr(kKey)));
  }

  ChatOutcome call(ChatRequest chat) {
    auto promise = std::make_shared<std::promise<ChatOutcome>>();
    auto future = promise->get_future();
    client_->submit(std::move(chat),
                    [promise](ChatOutcome outcome) { promise->set_value(std::move(outcome)); });
    if (future.wait_for(30s) != std::future_status::ready)
      return ChatFailure{TurnStatus::kPending, "no outcome", {}};
    return future.get();
  }

  ChatReply reply_of(ChatRequest chat) {
    const ChatOutcome outcome = call(std::move(chat));
    if (const auto* failure = std::get_if<ChatFailure>(&outcome)) {
      ADD_FAILURE() << name_of(failure->status) << ": " << failure->message;
      return {};
    }
    return std::get<ChatReply>(outcome);
  }

  ChatFailure failure_of(ChatRequest chat) {
    const ChatOutcome outcome = call(std::move(chat));
    if (std::holds_alternative<ChatReply>(outcome)) {
      ADD_FAILURE() << "a reply: " << std::get<ChatReply>(outcome).text.substr(0, 100);
      return {};
    }
    EXPECT_THAT(std::get<ChatFailure>(outcome).message, Not(HasSubstr(kKey)));
    return std::get<ChatFailure>(outcome);
  }

  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> before_;
  std::unique_ptr<LlmClient> client_ = LlmClient::start();
};

LlmServerReply fine() {
  return sse_reply(answer_events("hello world"));
}

// First `faulty`, then a good answer.
std::function<LlmServerReply(const LlmServerRequest&)> once(LlmServerReply faulty) {
  return [faulty](const LlmServerRequest& seen) { return seen.number == 0 ? faulty : fine(); };
}

TEST_F(LlmClientTest, StreamsInTinyPiecesAndSendsWhatItShould) {
  LlmServerRequest seen;
  LlmServer server([&seen](const LlmServerRequest& request) {
    seen = request;
    return sse_reply(answer_events("gr\xc3\xbc\xc3\x9f dich, W\xc3\xb6lt", "stop", 100), 1);
  });
  const ChatReply reply = reply_of(request(server));
  EXPECT_EQ(reply.text, "gr\xc3\xbc\xc3\x9f dich, W\xc3\xb6lt");
  EXPECT_EQ(reply.finish_reason, "stop");
  EXPECT_EQ(reply.usage.prompt, 11);
  EXPECT_EQ(reply.usage.completion, 7);
  EXPECT_THAT(seen.head, HasSubstr("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_THAT(seen.head, HasSubstr(std::string("Authorization: Bearer ") + kKey));
  EXPECT_THAT(seen.body, HasSubstr("\"include_usage\":true"));
}

TEST_F(LlmClientTest, TakesAWholeJsonAnswer) {
  LlmServer server([](const LlmServerRequest&) {
    return http_reply(
        200, "Content-Type: application/json\r\n",
        R"({"choices":[{"message":{"content":"whole","reasoning_content":"why"},"finish_reason":"stop"}]})");
  });
  const ChatReply reply = reply_of(request(server));
  EXPECT_EQ(reply.text, "whole");
  EXPECT_EQ(reply.reasoning, "why");
  EXPECT_EQ(reply.usage.prompt, 4);  // estimated from 13 bytes
}

TEST_F(LlmClientTest, WaitsAsLongAsRetryAfterSays) {
  LlmServer server(once(http_reply(429, "Retry-After: 1\r\n", R"({"error":{"message":"slow down"}})")));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reply_of(request(server)).text, "hello world");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(server.requests(), 2);
}

TEST_F(LlmClientTest, ALongRetryAfterIsTheCallersToWaitFor) {
  char date[64];
  const std::time_t later = std::time(nullptr) + 1000;
  std::tm parts{};
  gmtime_r(&later, &parts);
  std::strftime(date, sizeof(date), "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  LlmServer server([&date](const LlmServerRequest&) { return http_reply(503, date, ""); });
  const ChatFailure failure = failure_of(request(server));
  EXPECT_EQ(failure.status, TurnStatus::kLlmTransient);
  ASSERT_TRUE(failure.retry_after_ms.has_value());
  EXPECT_NEAR(static_cast<double>(*failure.retry_after_ms), 1'000'000, 20'000);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(LlmClientTest, RetriesServerErrorsUpToMaxAttempts) {
  LlmServer once_bad(once(http_reply(500, "", "oops")));
  EXPECT_EQ(reply_of(request(once_bad)).text, "hello world");
  EXPECT_EQ(once_bad.requests(), 2);
  LlmServer always_bad([](const LlmServerRequest&) { return http_reply(502, "", "bad gateway"); });
  const ChatFailure failure = failure_of(request(always_bad));
  EXPECT_EQ(failure.status, TurnStatus::kLlmTransient);
  EXPECT_THAT(failure.message, HasSubstr("HTTP 502"));
  EXPECT_THAT(failure.message, HasSubstr("attempt 3 of 3"));
  EXPECT_EQ(always_bad.requests(), 3);
}

TEST_F(LlmClientTest, RetriesAfterAResetATornStreamAndMalformedJson) {
  LlmServerReply reset = sse_reply({R"({"choices":[{"delta":{"content":"half"}}]})"});
  reset.end = LlmServerReply::End::kReset;
  const LlmServerReply torn = sse_reply({R"({"choices":[{"delta":{"content":"half"}}]})"});
  const LlmServerReply malformed =
      sse_reply({"{\"choices\":[", R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"});
  const LlmServerReply inside = sse_reply({R"({"error":{"message":"overloaded","code":503}})"});
  const LlmServerReply empty = {{}, LlmServerReply::End::kClose};
  for (const LlmServerReply& faulty : {reset, torn, malformed, inside, empty}) {
    LlmServer server(once(faulty));
    EXPECT_EQ(reply_of(request(server)).text, "hello world");
    EXPECT_EQ(server.requests(), 2);
  }
}

TEST_F(LlmClientTest, AStallOrSilenceIsEndedAndRetried) {
  LlmServerReply stalled = sse_reply({R"({"choices":[{"delta":{"content":"half"}}]})"});
  stalled.end = LlmServerReply::End::kSilent;
  const LlmServerReply silent = {{}, LlmServerReply::End::kSilent};
  for (const LlmServerReply& faulty : {stalled, silent}) {
    LlmServer server(once(faulty));
    ChatRequest chat = request(server);
    (faulty.pieces.empty() ? chat.model.first_byte_timeout_s : chat.model.stall_timeout_s) = 0.3;
    EXPECT_EQ(reply_of(chat).text, "hello world");
    EXPECT_EQ(server.requests(), 2);
    EXPECT_THAT(log_.str(),
                HasSubstr(faulty.pieces.empty() ? "no answer began within 0.3 s" : "stalled for 0.3 s"));
  }
}

TEST_F(LlmClientTest, TheWholeCallHasALimit) {
  LlmServer server([](const LlmServerRequest&) { return LlmServerReply{{}, LlmServerReply::End::kSilent}; });
  ChatRequest chat = request(server);
  chat.model.total_timeout_s = 0.2;
  chat.model.max_attempts = 1;
  EXPECT_EQ(failure_of(chat).status, TurnStatus::kLlmTransient);
}

TEST_F(LlmClientTest, AServerThatDoesNotCloseAfterDoneDelaysNothing) {
  LlmServer server([](const LlmServerRequest&) {
    LlmServerReply reply = fine();
    reply.end = LlmServerReply::End::kSilent;
    return reply;
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reply_of(request(server)).text, "hello world");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);  // the stall timeout is five
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(LlmClientTest, FatalFaultsAreNotRetriedAndNeverShowTheKey) {
  for (const int status : {301, 400, 401, 403, 404}) {
    LlmServer server([status](const LlmServerRequest&) {
      return http_reply(
          status, "Location: http://127.0.0.1:1/\r\n",
          std::string(R"({"error":{"message":"bad key )") + kKey + R"(","code":")" + kKey + R"("}})");
    });
    const ChatFailure failure = failure_of(request(server));
    EXPECT_EQ(failure.status, TurnStatus::kLlmFatal);
    EXPECT_THAT(failure.message, HasSubstr(std::to_string(status)));
    EXPECT_EQ(server.requests(), 1);
    if (status == 401) {
      EXPECT_THAT(failure.message, HasSubstr("FIXIT_TEST_LLM_KEY"));
    }
  }
}

TEST_F(LlmClientTest, AMissingKeyIsToldBeforeAnyConnection) {
  LlmServer server([](const LlmServerRequest&) { return fine(); });
  ChatRequest chat = request(server);
  chat.model.api_key_env = "FIXIT_TEST_UNSET_KEY";
  const ChatFailure failure = failure_of(chat);
  EXPECT_EQ(failure.status, TurnStatus::kLlmFatal);
  EXPECT_THAT(failure.message, HasSubstr("FIXIT_TEST_UNSET_KEY"));
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(LlmClientTest, AFullContextIsToldApart) {
  LlmServer server([](const LlmServerRequest&) {
    return http_reply(400, "", R"({"error":{"message":"too long","code":"context_length_exceeded"}})");
  });
  EXPECT_EQ(failure_of(request(server)).status, TurnStatus::kContextExhausted);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(LlmClientTest, KeepsTheFinishReasonAndSeparatesReasoning) {
  LlmServer server([](const LlmServerRequest&) {
    std::vector<std::string> events = answer_events("<think>deep</think>\nshort", "length");
    events.insert(events.begin(), R"({"choices":[{"delta":{"reasoning_content":"first"}}]})");
    return sse_reply(events);
  });
  const ChatReply reply = reply_of(request(server));
  EXPECT_EQ(reply.finish_reason, "length");
  EXPECT_EQ(reply.text, "short");
  EXPECT_EQ(reply.reasoning, "first\ndeep");
}

TEST_F(LlmClientTest, TakesFiveMegabytesAndRefusesEndlessAnswers) {
  const std::string large(5 << 20, 'x');
  LlmServer server(
      [&large](const LlmServerRequest&) { return sse_reply(answer_events(large, "stop", 4096)); });
  EXPECT_EQ(reply_of(request(server)).text, large);
  LlmServer endless([](const LlmServerRequest&) {
    LlmServerReply reply = sse_reply({});
    reply.pieces.resize(1 + 130, ": " + std::string(512 << 10, 'c') + "\n");
    return reply;
  });
  const ChatFailure failure = failure_of(request(endless));
  EXPECT_EQ(failure.status, TurnStatus::kLlmFatal);
  EXPECT_THAT(failure.message, HasSubstr("64 MiB"));
}

TEST_F(LlmClientTest, AHundredStreamsRunAtOnce) {
  constexpr int kStreams = 100;
  std::latch all_here(kStreams);  // no answer begins before every request is there
  LlmServer server([&all_here](const LlmServerRequest& seen) {
    all_here.arrive_and_wait();
    return sse_reply(answer_events("echo " + seen.body.substr(seen.body.find("stream-"), 10)), 64);
  });
  std::atomic<int> right = 0;
  std::latch done(kStreams);
  for (int i = 100; i < 100 + kStreams; ++i) {
    ChatRequest chat = request(server);
    chat.model.concurrency = kStreams;
    chat.model.max_attempts = 1;
    const std::string tag = "stream-" + std::to_string(i);
    chat.messages = {{"user", tag}};
    client_->submit(chat, [&right, &done, tag](const ChatOutcome& outcome) {
      const auto* reply = std::get_if<ChatReply>(&outcome);
      if (reply != nullptr && reply->text == "echo " + tag) ++right;
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(right, kStreams);
}

TEST_F(LlmClientTest, OpensNoMoreThanTheModelsConcurrency) {
  LlmServer server([](const LlmServerRequest&) { return fine(); });
  std::latch done(20);
  for (int i = 0; i < 20; ++i) {
    ChatRequest chat = request(server);
    chat.model.concurrency = 3;
    client_->submit(chat, [&done](const ChatOutcome&) { done.count_down(); });
  }
  done.wait();
  EXPECT_EQ(server.requests(), 20);
  EXPECT_LE(server.most_at_once(), 3);
}

TEST_F(LlmClientTest, EndsWithCallsOpen) {
  LlmServer server([](const LlmServerRequest&) { return LlmServerReply{{}, LlmServerReply::End::kSilent}; });
  std::atomic<int> answered = 0;
  for (int i = 0; i < 5; ++i)
    client_->submit(request(server), [&answered](const ChatOutcome&) { ++answered; });
  client_.reset();
  EXPECT_EQ(answered, 0);
}

}  // namespace
}  // namespace fixit

// The parts of the model client that need no network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "worker/llm/chat_answer.h"
#include "worker/llm/chat_request.h"
#include "worker/llm/llm_client.h"
#include "worker/llm/provider_fault.h"

namespace fixit {
namespace {

using testing::HasSubstr;
using testing::Not;

ChatRequest request() {
  ChatRequest request;
  request.model.name = "m";
  request.model.model = "vendor/m";
  request.model.base_url = "http://127.0.0.1:1/v1/";
  request.model.max_tokens = 77;
  request.messages = {{"system", "s"}, {"user", "bad \xff byte"}};
  return request;
}

TEST(ChatRequestBody, MergesSamplingAsGiven) {
  ChatRequest chat = request();
  chat.model.sampling_json = R"({"temperature": 0.5, "top_k": 20, "extra": {"a": [1]}})";
  const auto text = chat_request_body(chat);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  const Json body = Json::parse(*text);
  EXPECT_EQ(body["model"], "vendor/m");
  EXPECT_EQ(body["messages"][1]["role"], "user");
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["max_tokens"], 77);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["extra"]["a"][0], 1);
  EXPECT_TRUE(body["top_k"].is_number_integer());
}

TEST(ChatRequestBody, LetsTheModelsFileChooseTheFormOfLimitAndAnswer) {
  ChatRequest chat = request();
  chat.model.sampling_json = R"({"max_completion_tokens": 5, "stream": false})";
  const Json body = Json::parse(*chat_request_body(chat));
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_FALSE(body.contains("stream_options"));
  EXPECT_EQ(body["max_completion_tokens"], 5);
  for (const std::string bad : {R"({"messages": []})", R"({"model": "x"})", "[]", "{"}) {
    chat.model.sampling_json = bad;
    EXPECT_EQ(chat_request_body(chat).status().code(), ErrorCode::kInvalid) << bad;
  }
}

TEST(ChatEndpoint, TakesHttpsAndLoopbackOnly) {
  ModelConfig model = request().model;
  EXPECT_EQ(chat_endpoint(model)->url, "http://127.0.0.1:1/v1/chat/completions");
  EXPECT_TRUE(chat_endpoint(model)->loopback);
  model.base_url = "https://user:secret@host.example/v1";
  EXPECT_EQ(chat_endpoint(model)->shown, "https://host.example");
  for (const std::string bad : {"http://host.example/v1", "ftp://host/v1", "file:///etc/passwd",
                                "http://127.evil.example/v1", "", "no url"}) {
    model.base_url = bad;
    EXPECT_EQ(chat_endpoint(model).status().code(), ErrorCode::kInvalid) << bad;
  }
  model.base_url = "http://host.example/v1";
  model.allow_http = true;
  EXPECT_TRUE(chat_endpoint(model).ok());
}

TEST(ApiKey, IsNamedButNeverShown) {
  ModelConfig model = request().model;
  EXPECT_EQ(*api_key(model), "");
  model.api_key_env = "FIXIT_TEST_NO_SUCH_KEY";
  EXPECT_THAT(api_key(model).status().message(), HasSubstr("FIXIT_TEST_NO_SUCH_KEY"));
  ASSERT_EQ(setenv("FIXIT_TEST_BAD_KEY", "sk-123\nEvil: header", 1), 0);
  model.api_key_env = "FIXIT_TEST_BAD_KEY";
  EXPECT_THAT(api_key(model).status().message(), Not(HasSubstr("sk-123")));
}

TEST(ChatAnswer, PutsDeltasTogether) {
  ChatAnswer answer;
  answer.add_event(
      R"({"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"th","reasoning":"th"}}]})");
  answer.add_event(
      R"({"choices":[{"index":0,"delta":{"reasoning":"ink"}},{"index":1,"delta":{"content":"no"}}]})");
  answer.add_event(R"({"choices":[{"delta":{"content":"an"}}]})");
  answer.add_event(
      R"({"choices":[{"delta":{"content":[{"type":"text","text":"sw"}]},"finish_reason":null}]})");
  EXPECT_FALSE(answer.finished());
  answer.add_event(R"({"choices":[{"delta":{"content":"er"},"finish_reason":"length"}]})");
  answer.add_event(R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":8,
    "prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}})");
  answer.add_event("[DONE]");
  ASSERT_TRUE(answer.finished());
  ChatRequest chat = request();
  chat.model.usd_per_million_prompt = 2e6;
  chat.model.usd_per_million_cached = 1e6;
  chat.model.usd_per_million_completion = 10e6;
  const ChatReply reply = answer.take_reply(chat);
  EXPECT_EQ(reply.text, "answer");
  EXPECT_EQ(reply.reasoning, "think");
  EXPECT_EQ(reply.finish_reason, "length");
  EXPECT_EQ(reply.usage.prompt, 10);
  EXPECT_EQ(reply.usage.cached, 4);
  EXPECT_EQ(reply.usage.completion, 8);
  EXPECT_EQ(reply.usage.reasoning, 3);
  EXPECT_DOUBLE_EQ(reply.cost_usd, 6 * 2 + 4 * 1 + 8 * 10);
}

TEST(ChatAnswer, SurvivesAnyJson) {
  for (const char* data :
       {"null", "[]", "1", "{", "{\"choices\":1}", R"({"choices":[1,{"delta":[]},{"delta":{"content":5}}]})",
        R"({"usage":{"prompt_tokens":-1,"completion_tokens":1e300}})", R"({"usage":[]})", R"({"error":[]})",
        R"({"choices":[{"index":"x","finish_reason":7}]})", "\xff"}) {
    ChatAnswer answer;
    answer.add_event(data);
    EXPECT_FALSE(answer.finished()) << data;
  }
}

TEST(SeparateThinking, MovesOnlyWhatStandsAtTheStart) {
  const auto separated = [](const std::string& text) {
    ChatReply reply;
    reply.text = text;
    separate_thinking(reply);
    return std::pair(reply.text, reply.reasoning);
  };
  EXPECT_EQ(separated("\n<think>why</think>\n\nText"), std::pair(std::string("Text"), std::string("why")));
  EXPECT_EQ(separated("<think>why"), std::pair(std::string(""), std::string("why")));
  EXPECT_EQ(separated("Text <think>x</think>"),
            std::pair(std::string("Text <think>x</think>"), std::string("")));
}

TEST(ProviderFault, IsClassified) {
  const ProviderError none;
  for (const int status : {408, 409, 425, 429, 500, 502, 503, 529})
    EXPECT_EQ(classify_fault(status, none), TurnStatus::kLlmTransient) << status;
  for (const int status : {301, 400, 401, 402, 403, 404, 413, 422})
    EXPECT_EQ(classify_fault(status, none), TurnStatus::kLlmFatal) << status;
  EXPECT_EQ(classify_fault(400, {"context_length_exceeded", "", 0}), TurnStatus::kContextExhausted);
  EXPECT_EQ(classify_fault(400, {"", "This model's Maximum Context Length is 8 tokens", 0}),
            TurnStatus::kContextExhausted);
  EXPECT_EQ(classify_fault(500, {"", "lost the context window of the request", 0}),
            TurnStatus::kLlmTransient);
  EXPECT_EQ(classify_fault(200, {"", "overloaded", 0}), TurnStatus::kLlmTransient);
  EXPECT_EQ(classify_fault(200, {"", "no credit", 402}), TurnStatus::kLlmFatal);
}

TEST(ProviderFault, DescriptionHoldsNoKeyEvenWhereItIsCut) {
  const std::string key = "sk-" + std::string(60, 'k');
  for (size_t pad = 300; pad < 420; ++pad)
    EXPECT_THAT(describe_fault(401, {"c", std::string(pad, '.') + key + " tail", 0}, key),
                Not(HasSubstr("sk-k")));
}

TEST(RetryDelay, IsFullJitterOrWhatTheProviderAsks) {
  EXPECT_EQ(retry_delay_ms(2, std::nullopt, 0), 0);
  EXPECT_EQ(retry_delay_ms(2, std::nullopt, 0.5), 250);
  EXPECT_EQ(retry_delay_ms(4, std::nullopt, 0.5), 1000);
  EXPECT_LE(retry_delay_ms(60, std::nullopt, 0.999), 60'000);
  EXPECT_GE(retry_delay_ms(2, 7000, 0.9), 7000);
  EXPECT_LE(retry_delay_ms(2, 7000, 0.9), 8000);
}

TEST(Replay, SlotsNameKindProblemSampleAndTurn) {
  EXPECT_EQ(replay_slot(JobKind::kRollout, "gemm", 0, std::nullopt, 2), "rollout/gemm/sample0/turn2");
  EXPECT_EQ(replay_slot(JobKind::kRepair, "gemm", 3, 1, 0), "repair/gemm/sample3-turn1/turn0");
  EXPECT_EQ(replay_slot(JobKind::kRationale, "gemm", 3, 1, 1), "rationale/gemm/sample3-turn1/turn1");
}

ChatRequest replay_request(const std::string& slot) {
  ChatRequest chat = request();
  chat.model.protocol = ModelProtocol::kReplay;
  chat.slot = slot;
  chat.messages = {{"user", "12345678"}};
  chat.recordings = std::make_shared<const std::map<std::string, RecordedReply>>(
      std::map<std::string, RecordedReply>{{"rollout/p/sample0/turn0", {"12345", "123456789", "length"}}});
  return chat;
}

ChatOutcome call(LlmClient& client, ChatRequest chat) {
  auto promise = std::make_shared<std::promise<ChatOutcome>>();
  auto future = promise->get_future();
  client.submit(std::move(chat), [promise](ChatOutcome outcome) { promise->set_value(std::move(outcome)); });
  if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready)
    return ChatFailure{TurnStatus::kPending, "no answer", {}};
  return future.get();
}

TEST(Replay, AnswersFromItsRecordings) {
  const auto client = LlmClient::start();
  const ChatOutcome outcome = call(*client, replay_request("rollout/p/sample0/turn0"));
  ASSERT_TRUE(std::holds_alternative<ChatReply>(outcome));
  const auto& reply = std::get<ChatReply>(outcome);
  EXPECT_EQ(reply.text, "12345");
  EXPECT_EQ(reply.reasoning, "123456789");
  EXPECT_EQ(reply.finish_reason, "length");
  EXPECT_EQ(reply.usage.prompt, 2);
  EXPECT_EQ(reply.usage.reasoning, 3);
  EXPECT_EQ(reply.usage.completion, 5);
}

TEST(Replay, NamesTheSlotThatIsNotRecorded) {
  const auto client = LlmClient::start();
  for (ChatRequest chat : {replay_request("rollout/p/sample9/turn0"), request()}) {
    chat.model.protocol = ModelProtocol::kReplay;
    chat.slot = "rollout/p/sample9/turn0";
    const ChatOutcome outcome = call(*client, chat);
    ASSERT_TRUE(std::holds_alternative<ChatFailure>(outcome));
    EXPECT_EQ(std::get<ChatFailure>(outcome).status, TurnStatus::kLlmFatal);
    EXPECT_THAT(std::get<ChatFailure>(outcome).message, HasSubstr("rollout/p/sample9/turn0.md"));
  }
}

TEST(Replay, SimulatedLatenciesOverlapUpToTheConcurrency) {
  const auto client = LlmClient::start();
  const auto elapsed_ms = [&client](int concurrency) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<int> open = 8;
    std::promise<void> all;
    for (int i = 0; i < 8; ++i) {
      ChatRequest chat = replay_request("rollout/p/sample0/turn0");
      chat.model.name += std::to_string(concurrency);
      chat.model.concurrency = concurrency;
      chat.model.seconds_per_reply = 0.05;
      client->submit(std::move(chat), [&](const ChatOutcome&) {
        if (--open == 0) all.set_value();
      });
    }
    EXPECT_EQ(all.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  EXPECT_GE(elapsed_ms(2), 4 * 49.0);
  const double wide = elapsed_ms(8);
  EXPECT_GE(wide, 49.0);
  EXPECT_LT(wide, 8 * 50.0);  // one after the other would take at least that
}

}  // namespace
}  // namespace fixit

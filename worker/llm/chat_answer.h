// The answer of an OpenAI-compatible chat completion, put together from its pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/codec.h"
#include "worker/llm/llm_client.h"

namespace fixit {

struct ProviderError {
  std::string code;     // the provider's code or type
  std::string message;  // the provider's words, not yet freed of keys
  int status = 0;       // an HTTP status inside the error, 0: none
};

// Takes streamed chunks or one whole document. Fields of unexpected types are left aside; text that is not
// JSON is remembered as `malformed()`.
class ChatAnswer {
 public:
  void add_event(std::string_view data);     // one SSE event's data, "[DONE]" among them
  void add_document(std::string_view body);  // a whole JSON answer

  bool finished() const { return !finish_reason_.empty(); }
  bool malformed() const { return malformed_; }
  const std::optional<ProviderError>& error() const { return error_; }

  // REQUIRES: finished(). Thinking at the start of the content is moved to the reasoning, usage is estimated
  // where there was none, the cost is the model's prices times the usage.
  ChatReply take_reply(const ChatRequest& request);

 private:
  void add(const Json& document, const char* part);
  void add_usage(const Json& usage);

  std::string text_;
  std::string reasoning_;
  std::string finish_reason_;
  std::optional<TokenUsage> usage_;
  std::optional<ProviderError> error_;
  bool malformed_ = false;
};

// {"error": {...}} of a body, where it is one.
std::optional<ProviderError> parse_provider_error(std::string_view body);

// Moves <think>...</think> at the start of `reply.text` (without its end: all of it) to `reply.reasoning`.
void separate_thinking(ChatReply& reply);

// 4 bytes a token, rounded up.
TokenUsage estimate_usage(const ChatRequest& request, const ChatReply& reply);
double cost_usd(const ModelConfig& model, const TokenUsage& usage);

}  // namespace fixit

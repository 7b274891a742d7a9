// Model calls: many at once, answered by callback. Providers: OpenAI-compatible chat completions over one
// libcurl multi handle on one thread, and replay of recorded replies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/model_config.h"
#include "core/record/frozen_sweep.h"
#include "core/record/job.h"

namespace fixit {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

struct ChatRequest {
  ModelConfig model;
  std::vector<ChatMessage> messages;
  // Replay: which recorded reply answers, see replay_slot(); and where the recordings are.
  std::string slot;
  std::shared_ptr<const std::map<std::string, RecordedReply>> recordings;
};

struct ChatReply {
  std::string text;       // without reasoning
  std::string reasoning;  // in whatever field the provider sends it; empty: none
  std::string finish_reason = "stop";
  TokenUsage usage;  // as the provider reports it; estimated (4 bytes a token) where it reports none
  double cost_usd = 0;
};

struct ChatFailure {
  // kLlmTransient: the provider's retry budget is spent, another attempt later may work.
  // kLlmFatal: it will not work (401, 404, bad request, no key, no recorded reply). kContextExhausted.
  TurnStatus status = TurnStatus::kLlmTransient;
  std::string message;  // for people: provider, HTTP status, what to do; never holds a key
  std::optional<int64_t> retry_after_ms;
};

using ChatOutcome = std::variant<ChatReply, ChatFailure>;

// Thread-safe. Callbacks run on the client's thread and must not block. 429, 5xx, resets and stalls are
// retried inside, with jitter and Retry-After, up to the model's max_attempts.
class LlmClient {
 public:
  static std::unique_ptr<LlmClient> start();
  virtual ~LlmClient() = default;  // open calls end without their callback
  virtual void submit(ChatRequest request, std::function<void(ChatOutcome)> done) = 0;
};

// "rollout/PROBLEM/sample0/turn2": the path of a recorded reply below a replay model's folder, without `.md`.
// Repairs and rationales: "repair/PROBLEM/sample0-turn1/turn0": sample and turn of the failure, then the turn
// of the repair (the attempt of the rationale).
std::string replay_slot(JobKind kind, const std::string& problem, int sample,
                        const std::optional<int>& failed_turn, int turn);

}  // namespace fixit

#include "worker/llm/replay.h"

#include <fmt/format.h>

#include "worker/llm/chat_answer.h"

namespace fixit {

std::string replay_slot(JobKind kind, const std::string& problem, int sample,
                        const std::optional<int>& failed_turn, int turn) {
  const std::string origin = failed_turn ? fmt::format("-turn{}", *failed_turn) : "";
  return fmt::format("{}/{}/sample{}{}/turn{}", name_of(kind), problem, sample, origin, turn);
}

ChatOutcome replay(const ChatRequest& request) {
  static const std::map<std::string, RecordedReply> kNone;
  const auto& recordings = request.recordings ? *request.recordings : kNone;
  const auto found = recordings.find(request.slot);
  if (found == recordings.end())
    return ChatFailure{
        TurnStatus::kLlmFatal,
        fmt::format("model {}: no reply is recorded for {}; write it to {}.md below the model's replies "
                    "folder ({}) and launch again",
                    request.model.name, request.slot, request.slot, request.model.replies),
        std::nullopt};
  ChatReply reply;
  reply.text = found->second.text;
  reply.reasoning = found->second.reasoning;
  reply.finish_reason = found->second.finish_reason;
  separate_thinking(reply);
  reply.usage = estimate_usage(request, reply);
  reply.cost_usd = cost_usd(request.model, reply.usage);
  return reply;
}

}  // namespace fixit

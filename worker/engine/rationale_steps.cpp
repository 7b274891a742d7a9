// Rationale: one call, checked; a refused one is asked for once more.
#include <spdlog/spdlog.h>

#include "worker/engine/steps.h"
#include "worker/prompt/prompt.h"
#include "worker/rationale/rationale_filter.h"

namespace fixit {
namespace {

constexpr int kAttempts = 2;  // the first writing and one rewriting

}  // namespace

Result<Action> Steps::advance_rationale(Trajectory& t) {
  if (t.turn() >= kAttempts) return finish(t, JobOutcome::kDone, "");
  if (budget_is_spent(t, t.progress)) return finish(t, JobOutcome::kBudget, "");
  BlobStore& store = parts_.store;
  const Origin& origin = *t.payload.origin;
  const RationaleStage& limits = t.frozen().recipe->rationale;
  FIXIT_ASSIGN_OR_RETURN(const std::string task, task_message(t.problem(), t.gpu(), target_speedup(t)));
  FIXIT_ASSIGN_OR_RETURN(const std::string failed, store.get(origin.failed_source));
  FIXIT_ASSIGN_OR_RETURN(const std::string feedback, store.get(origin.failed_feedback));
  FIXIT_ASSIGN_OR_RETURN(const std::string repaired, store.get(origin.repaired_source));
  RationaleCheck refused;
  if (t.turn() > 0) {
    FIXIT_ASSIGN_OR_RETURN(const std::string reply, store.get(t.progress.turns.back().reply));
    refused = check_rationale(reply, limits);
  }
  std::string message =
      rationale_message(task, failed, feedback, repaired, limits, refused.text, refused.rule);
  FIXIT_ASSIGN_OR_RETURN(t.task, store.put(message));
  std::vector<ChatMessage> messages = {{"user", std::move(message)}};
  FIXIT_ASSIGN_OR_RETURN(ChatRequest request, request_of(t, std::move(messages)));
  return ask(t, std::move(request));
}

Result<Action> Steps::accept_rationale(Trajectory& t, const std::string& key, const StoredReply& reply) {
  const RationaleCheck check = check_rationale(reply.text, t.frozen().recipe->rationale);
  FIXIT_ASSIGN_OR_RETURN(JobProgress progress, with_reply(t, reply));
  RationaleRecord record;
  record.axes = t.axes;
  record.origin = *t.payload.origin;
  record.attempt = t.turn();
  record.accepted = check.accepted;
  record.rule = check.rule;
  record.request = t.task;
  record.reply = progress.current.reply;
  FIXIT_ASSIGN_OR_RETURN(record.text, parts_.store.put(check.text));
  record.usage = reply.usage;
  record.cost_usd = reply.cost;
  record.times = progress.current.times;
  record.worker = parts_.worker;

  PastTurn past;
  past.reply = record.reply;
  past.status = check.accepted ? TurnStatus::kCorrect : TurnStatus::kRejected;
  progress.turns.push_back(std::move(past));
  progress.current = CurrentTurn();
  const bool last = check.accepted || record.attempt + 1 >= kAttempts;
  if (!last) {
    const JobEvent event = rationale_event(record);
    FIXIT_RETURN_IF_ERROR(commit(t, std::move(progress), {&event, 1}));
    parts_.replies.forget(key);
    return advance(t);
  }
  FIXIT_RETURN_IF_ERROR(parts_.store.sync());
  const JobEvent events[] = {rationale_event(record), end_event(t, progress, JobOutcome::kDone, "", now())};
  FIXIT_RETURN_IF_ERROR(parts_.queue.finish(t.claimed.lease, events));
  parts_.replies.forget(key);
  spdlog::info("job {} of {}: rationale {}", t.axes.job, t.axes.sweep,
               check.accepted ? "accepted" : "refused: " + check.rule);
  return Action(Ended{});
}

}  // namespace fixit

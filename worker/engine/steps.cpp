#include "worker/engine/steps.h"

#include <spdlog/spdlog.h>

namespace fixit {

Result<Action> Steps::begin(Trajectory& t) {
  FIXIT_ASSIGN_OR_RETURN(t.payload, decode<JobPayload>(t.claimed.payload));
  if (!t.claimed.progress.empty()) {
    FIXIT_ASSIGN_OR_RETURN(t.progress, decode<JobProgress>(t.claimed.progress));
  }
  FIXIT_ASSIGN_OR_RETURN(t.sweep, parts_.sweeps.get(t.claimed.sweep));
  FIXIT_RETURN_IF_ERROR(resolve_axes(t));
  return advance(t);
}

Result<Action> Steps::advance(Trajectory& t) {
  return t.payload.kind == JobKind::kRationale ? advance_rationale(t) : advance_kernel(t);
}

Result<Action> Steps::accept(Trajectory& t, const std::string& key, const StoredReply& reply) {
  if (t.payload.kind == JobKind::kRationale) return accept_rationale(t, key, reply);
  FIXIT_ASSIGN_OR_RETURN(JobProgress progress, with_reply(t, reply));
  progress.current.next = Stage::kCompile;
  FIXIT_RETURN_IF_ERROR(commit(t, std::move(progress), {}));
  parts_.replies.forget(key);
  return advance(t);
}

Result<Action> Steps::on_reply(Trajectory& t, const std::string& key, const ChatReply& reply,
                               int64_t begin_ms) {
  const StoredReply value{
      reply.text, reply.reasoning, reply.finish_reason, reply.usage, reply.cost_usd, begin_ms, now()};
  // Without the local copy (its disk is full) the store's own is the first that is safe.
  if (const Status spooled = parts_.replies.spool(key, value); !spooled.ok())
    spdlog::error("reply of job {} is not in the spool: {}", t.axes.job, spooled.to_string());
  FIXIT_ASSIGN_OR_RETURN(const StoredReply counts, parts_.replies.deliver(key, value));
  return accept(t, key, counts);
}

Result<Action> Steps::ask(Trajectory& t, ChatRequest request) {
  std::string key = reply_key(t.axes.job, t.turn(), request);
  FIXIT_ASSIGN_OR_RETURN(const std::optional<StoredReply> known, parts_.replies.find(key));
  if (known) return accept(t, key, *known);
  return Action(CallModel{std::move(request), std::move(key)});
}

Result<ChatRequest> Steps::request_of(const Trajectory& t, std::vector<ChatMessage> messages) {
  ChatRequest request;
  request.model = t.frozen().models[static_cast<size_t>(t.payload.model)].config;
  request.messages = std::move(messages);
  std::optional<int> failed_turn;
  if (t.payload.origin) failed_turn = t.payload.origin->failed_turn;
  request.slot = replay_slot(t.payload.kind, t.axes.problem, t.axes.sample, failed_turn, t.turn());
  FIXIT_ASSIGN_OR_RETURN(request.recordings, parts_.sweeps.recordings(*t.sweep, t.payload.model));
  return request;
}

Result<JobProgress> Steps::with_reply(const Trajectory& t, const StoredReply& reply) {
  JobProgress progress = t.progress;
  CurrentTurn& current = progress.current;
  FIXIT_ASSIGN_OR_RETURN(current.reply, parts_.store.put(reply.text));
  current.finish_reason = reply.finish_reason;
  current.usage = reply.usage;
  current.cost_usd = reply.cost;
  current.times["generate_begin"] = reply.begin_ms;
  current.times["generate_end"] = reply.end_ms;
  progress.spent_usd += reply.cost;
  progress.spent_tokens += reply.usage.prompt + reply.usage.completion;
  return progress;
}

Status Steps::commit(Trajectory& t, JobProgress progress, std::span<const JobEvent> events) {
  FIXIT_RETURN_IF_ERROR(parts_.store.sync());  // nothing in Redis names a blob that a crash could take
  FIXIT_RETURN_IF_ERROR(parts_.queue.commit(t.claimed.lease, encode(progress), events, parts_.lease));
  t.progress = std::move(progress);
  ++t.commits;
  return {};
}

Result<Action> Steps::finish(Trajectory& t, JobOutcome outcome, const std::string& error) {
  const JobEvent end = end_event(t, t.progress, outcome, error, now());
  FIXIT_RETURN_IF_ERROR(parts_.queue.finish(t.claimed.lease, {&end, 1}));
  spdlog::info("job {} of {}: {}{}{}", t.claimed.lease.job, t.claimed.sweep, name_of(outcome),
               error.empty() ? "" : ": ", error);
  return Action(Ended{});
}

Result<Action> Steps::fail(Trajectory& t, FailureKind kind, const std::string& error,
                           std::optional<std::chrono::milliseconds> retry_after) {
  const JobEvent dead = end_event(t, t.progress, JobOutcome::kDead, error, now());
  FIXIT_ASSIGN_OR_RETURN(const JobQueue::FailResult result,
                         parts_.queue.fail(t.claimed.lease, kind, error, retry_after, dead));
  spdlog::warn("job {} of {}: {}; {}", t.claimed.lease.job, t.claimed.sweep, error,
               result == JobQueue::FailResult::kRetry
                   ? "it will be tried again"
                   : "its retries are used up; `fixit status SWEEP` lists it as failed");
  return Action(Ended{});
}

double target_speedup(const Trajectory& t) {
  const FrozenSweep& sweep = t.frozen();
  const bool repair = t.payload.kind == JobKind::kRepair || t.payload.kind == JobKind::kRationale;
  return repair ? sweep.recipe->repair.target_speedup : sweep.sweep.target_speedup;
}

int turn_limit(const Trajectory& t) {
  if (t.payload.kind == JobKind::kEvaluate) return 1;
  return t.payload.kind == JobKind::kRepair ? t.frozen().recipe->repair.turns : t.frozen().sweep.turns;
}

bool budget_is_spent(const Trajectory& t, const JobProgress& progress) {
  const SweepBudget& budget = t.frozen().sweep.budget;
  return (budget.tokens > 0 && progress.spent_tokens >= budget.tokens) ||
         (budget.usd > 0 && progress.spent_usd >= budget.usd);
}

}  // namespace fixit

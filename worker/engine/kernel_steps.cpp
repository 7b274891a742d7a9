// Rollout, repair and evaluate: GENERATE, COMPILE, PROFILE, end of the turn.
#include <spdlog/spdlog.h>

#include <set>

#include <algorithm>

#include "worker/engine/steps.h"
#include "worker/extract/extraction.h"
#include "worker/feedback/feedback.h"
#include "worker/prompt/prompt.h"

namespace fixit {
namespace {

// Checks of a profiler (Verdict::check) that find fault with the definition or workload, not with the site.
const std::set<std::string> kProblemChecks = {"no reference", "workload", "definition"};

constexpr std::string_view kEntryPoint = "run";
constexpr int64_t kProfileDeadlineMs = 10 * 60 * 1000;  // in a broker's queue and on a profiler, together

}  // namespace

Result<Action> Steps::advance_kernel(Trajectory& t) {
  // A commit with these would have been a finish; they hold if limits were read from a corrected sweep.
  if (t.turn() >= turn_limit(t)) return finish(t, JobOutcome::kTurnLimit, "");
  if (t.progress.current.next == Stage::kProfile) return profile(t);
  if (t.payload.kind == JobKind::kEvaluate) {
    const FrozenSweep& sweep = t.frozen();
    t.progress.current.source = t.payload.origin ? t.payload.origin->failed_source : sweep.evaluate_source;
    return compile(t);
  }
  if (t.progress.current.next == Stage::kCompile) return compile(t);
  if (budget_is_spent(t, t.progress)) return finish(t, JobOutcome::kBudget, "");
  FIXIT_ASSIGN_OR_RETURN(std::vector<ChatMessage> messages, kernel_messages(t));
  FIXIT_ASSIGN_OR_RETURN(ChatRequest request, request_of(t, std::move(messages)));
  return ask(t, std::move(request));
}

Result<std::vector<ChatMessage>> Steps::kernel_messages(Trajectory& t) {
  BlobStore& store = parts_.store;
  std::vector<ChatMessage> messages;
  const std::string system = system_message(t.pack(), t.gpu());
  FIXIT_ASSIGN_OR_RETURN(std::string task, task_message(t.problem(), t.gpu(), target_speedup(t)));
  if (t.payload.kind == JobKind::kRepair) {
    FIXIT_ASSIGN_OR_RETURN(const std::string source, store.get(t.payload.origin->failed_source));
    FIXIT_ASSIGN_OR_RETURN(const std::string feedback, store.get(t.payload.origin->failed_feedback));
    task = repair_message(task, source, feedback);
  }
  FIXIT_ASSIGN_OR_RETURN(t.system, store.put(system));
  FIXIT_ASSIGN_OR_RETURN(t.task, store.put(task));
  messages.push_back({"system", system});
  messages.push_back({"user", std::move(task)});
  for (const PastTurn& past : t.progress.turns) {
    FIXIT_ASSIGN_OR_RETURN(std::string reply, store.get(past.reply));
    FIXIT_ASSIGN_OR_RETURN(std::string feedback, store.get(past.feedback));
    messages.push_back({"assistant", std::move(reply)});
    messages.push_back({"user", std::move(feedback)});
  }
  return messages;
}

Result<Action> Steps::compile(Trajectory& t) {
  std::string source;
  if (t.payload.kind == JobKind::kEvaluate) {
    FIXIT_ASSIGN_OR_RETURN(source, parts_.store.get(t.progress.current.source));
  } else {
    FIXIT_ASSIGN_OR_RETURN(const std::string reply, parts_.store.get(t.progress.current.reply));
    Extraction found = extract_kernel(reply, t.progress.current.finish_reason, kEntryPoint);
    if (found.status != TurnStatus::kPending) {
      TurnEnd end;
      end.status = found.status;
      end.reason = std::move(found.reason);
      end.times = t.progress.current.times;
      return end_turn(t, end);
    }
    source = std::move(found.source);
    FIXIT_ASSIGN_OR_RETURN(t.progress.current.source, parts_.store.put(source));
  }
  t.progress.current.times["compile_begin"] = now();
  return Action(StartCompile{{std::move(source), t.pack().headers, t.gpu()}});
}

Result<Action> Steps::on_compiled(Trajectory& t, const CompileRecord& record) {
  if (record.status == TurnStatus::kInfra)
    return fail(t, FailureKind::kInfra, "compile: " + record.check + ": " + record.evidence, std::nullopt);
  JobProgress progress = t.progress;
  progress.current.times["compile_end"] = now();
  if (record.status != TurnStatus::kCorrect) {
    TurnEnd end;
    end.status = record.status;
    end.source = progress.current.source;
    end.compile = &record;
    end.times = progress.current.times;
    return end_turn(t, end);
  }
  progress.current.compile = record;
  progress.current.next = Stage::kProfile;
  FIXIT_RETURN_IF_ERROR(commit(t, std::move(progress), {}));
  return profile(t);
}

Result<Action> Steps::profile(Trajectory& t) {
  const CurrentTurn& current = t.progress.current;
  const FrozenProblem& problem = t.problem();
  ProfileRequest request;
  request.sweep = t.axes.sweep;
  request.job = t.axes.job;
  request.priority = t.frozen().sweep.priority;
  request.deadline_ms = now() + kProfileDeadlineMs;
  request.gpu = t.gpu().name;
  request.target = t.gpu();
  request.definition = problem.definition;
  request.workloads = problem.workloads;
  request.artifact = current.compile.artifact;
  request.source = current.source;
  request.compile_key = current.compile.key;
  request.key = profile_request_key(request);
  t.progress.current.times["profile_begin"] = now();
  return Action(StartProfile{std::move(request)});
}

Result<Action> Steps::on_verdict(Trajectory& t, const Verdict& verdict) {
  if (!consumes_turn(verdict.status)) {  // INFRA, or what no profiler may say of a candidate
    const std::string error =
        "profile: " + std::string(name_of(verdict.status)) + ": " + verdict.check + ": " + verdict.evidence;
    // What is wrong with the problem itself stays wrong: another attempt would only cost time.
    if (kProblemChecks.contains(verdict.check)) return finish(t, JobOutcome::kDead, error);
    return fail(t, FailureKind::kInfra, error, std::nullopt);
  }
  TurnEnd end;
  end.status = verdict.status;
  end.source = t.progress.current.source;
  end.compile = &t.progress.current.compile;
  end.verdict = &verdict;
  end.times = t.progress.current.times;
  end.times["profile_end"] = now();
  return end_turn(t, end);
}

Result<BlobHash> Steps::store_feedback(const Trajectory& t, const TurnEnd& end) {
  FeedbackFacts facts;
  facts.status = end.status;
  facts.reason = end.reason;
  facts.compile = end.compile;
  facts.verdict = end.verdict;
  facts.target_speedup = target_speedup(t);
  if (end.compile && !end.compile->log.empty() && end.status == TurnStatus::kCompileError) {
    FIXIT_ASSIGN_OR_RETURN(facts.compile_log, parts_.store.get(end.compile->log));
  }
  return parts_.store.put(feedback_text(facts));
}

Result<Action> Steps::end_turn(Trajectory& t, const TurnEnd& end) {
  if (t.task.empty() && t.payload.kind != JobKind::kEvaluate) {  // resumed after GENERATE
    FIXIT_RETURN_IF_ERROR(kernel_messages(t).status());
  }
  const CurrentTurn& current = t.progress.current;
  TurnRecord record;
  record.axes = t.axes;
  record.origin = t.payload.origin;
  record.turn = t.turn();
  record.status = end.status;
  record.system = t.system;
  record.task = t.task;
  record.reply = current.reply;
  record.finish_reason = current.finish_reason;
  record.usage = current.usage;
  record.cost_usd = current.cost_usd;
  record.source = end.source;
  if (end.compile) record.compile = *end.compile;
  if (end.verdict) record.verdict = *end.verdict;
  FIXIT_ASSIGN_OR_RETURN(record.feedback, store_feedback(t, end));
  record.times = end.times;
  record.worker = parts_.worker;

  const std::optional<double> speedup = end.verdict ? end.verdict->speedup : std::nullopt;
  JobProgress progress = t.progress;
  progress.turns.push_back({record.reply, record.feedback, end.status, speedup, end.source});
  progress.current = CurrentTurn();
  const bool correct = end.status == TurnStatus::kCorrect && speedup;
  if (correct) progress.best_speedup = std::max(progress.best_speedup, *speedup);
  spdlog::debug("job {} turn {}: {}", t.axes.job, record.turn, name_of(end.status));

  std::optional<JobOutcome> outcome;
  if (t.payload.kind == JobKind::kEvaluate) {
    outcome = JobOutcome::kDone;
  } else if (correct && *speedup >= target_speedup(t)) {
    outcome = JobOutcome::kTargetReached;
  } else if (record.turn + 1 >= turn_limit(t)) {
    outcome = JobOutcome::kTurnLimit;
  } else if (budget_is_spent(t, progress)) {
    outcome = JobOutcome::kBudget;
  }
  if (!outcome) {
    const JobEvent event = turn_event(record);
    FIXIT_RETURN_IF_ERROR(commit(t, std::move(progress), {&event, 1}));
    return advance(t);
  }
  FIXIT_RETURN_IF_ERROR(parts_.store.sync());
  const JobEvent events[] = {turn_event(record), end_event(t, progress, *outcome, "", now())};
  FIXIT_RETURN_IF_ERROR(parts_.queue.finish(t.claimed.lease, events));
  spdlog::info("job {} of {}: {} after {} turns", t.axes.job, t.axes.sweep, name_of(*outcome),
               record.turn + 1);
  return Action(Ended{});
}

}  // namespace fixit

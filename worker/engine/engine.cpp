#include "worker/engine/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "worker/engine/claimer.h"
#include "worker/engine/event_queue.h"
#include "worker/engine/lease_keeper.h"
#include "worker/engine/step_pool.h"
#include "worker/engine/steps.h"

namespace fixit {
namespace {

constexpr int kStepThreads = 4;
constexpr int64_t kLeftoversEveryMs = 10'000;
constexpr int64_t kRepeatMs = 200;  // first delay of a step that met an outage; doubles
constexpr int64_t kLongestRepeatMs = 5'000;
constexpr int kRepeats = 60;  // about five minutes; then the job is given back
constexpr int64_t kFullQueueMs = 1'000;

using Step = std::function<Result<Action>(Trajectory&)>;

// What a trajectory waits for outside.
enum class Waiting { kNothing, kModel, kCompiler, kProfiler };

struct Entry {
  std::shared_ptr<Trajectory> trajectory;
  Waiting waiting = Waiting::kNothing;
  bool stepping = false;  // on the pool, which then owns the trajectory
  bool ending = false;    // the step finishes the job or gives it back
  bool cancelled = false;
};

bool may_pass(const Status& status) {
  return status.code() == ErrorCode::kUnavailable || status.code() == ErrorCode::kTimeout ||
         status.code() == ErrorCode::kFull;
}

class EventEngine : public Engine {
 public:
  EventEngine(Parts parts, Options options, std::unique_ptr<ReplyBank> replies)
      : parts_(std::move(parts)),
        options_(std::move(options)),
        queue_(*parts_.redis, options_.retry),
        registry_(*parts_.redis),
        sweeps_(registry_, *parts_.store),
        replies_(std::move(replies)),
        steps_(
            {queue_, *parts_.store, sweeps_, *replies_, *parts_.clock, options_.worker.id, options_.lease}),
        pool_(std::make_unique<StepPool>(kStepThreads)) {
    deliver_leftovers();
    keeper_ = std::make_unique<LeaseKeeper>(
        *parts_.beat, options_.worker, options_.lease, [this](const std::string& attempt, LeaseState state) {
          events_->post([this, attempt, state] { on_lease(attempt, state); });
        });
    Claimer::Options claims;
    claims.worker = options_.worker.id;
    claims.lease = options_.lease;
    claims.models = options_.models;
    claims.gpus = options_.gpus;
    claims.room = [this] { return options_.trajectories - keeper_->held(); };
    claims.on_claimed = [this](std::vector<ClaimedJob> jobs) { claimed(std::move(jobs)); };
    claimer_ = std::make_unique<Claimer>(*parts_.redis, *parts_.blocking, std::move(claims));
    thread_ = std::thread([this] { serve(); });
  }
  EventEngine(const EventEngine&) = delete;
  EventEngine& operator=(const EventEngine&) = delete;
  ~EventEngine() override { stop(); }

  int held() const override { return keeper_ ? keeper_->held() : 0; }

  void stop() override {
    if (!thread_.joinable()) return;
    events_->post(
        [this] { stopping_ = true; });  // before the claimer goes: what it still claims is given back
    retire_claimer();
    events_->post([this] {
      last_claims_are_in_ = true;
      release_waiting();
    });
    thread_.join();
    pool_.reset();
    keeper_.reset();
  }

 private:
  // ---- any thread ----

  void claimed(std::vector<ClaimedJob> jobs) {
    for (const ClaimedJob& job : jobs) keeper_->add(job.lease);
    events_->post([this, jobs = std::move(jobs)] {
      for (const ClaimedJob& job : jobs) begin(job);
    });
  }

  void retire_claimer() {
    std::unique_ptr<Claimer> last;
    {
      const std::lock_guard lock(claimer_mutex_);
      last = std::move(claimer_);
    }
  }

  void wake_claimer() {
    const std::lock_guard lock(claimer_mutex_);
    if (claimer_) claimer_->wake();
  }

  // ---- the engine's thread ----

  void serve() {
    while (!(stopping_ && last_claims_are_in_ && entries_.empty())) events_->take()();
  }

  void begin(const ClaimedJob& job) {
    Entry& entry = entries_[attempt_of(job.lease)];
    entry.trajectory = std::make_shared<Trajectory>();
    entry.trajectory->claimed = job;
    run(attempt_of(job.lease), [this](Trajectory& t) { return steps_.begin(t); });
  }

  // Runs the last step: finish or fail.
  void end(const std::string& attempt, Step step) {
    const auto found = entries_.find(attempt);
    if (found == entries_.end()) return;
    found->second.ending = true;
    run(attempt, std::move(step));
  }

  // Runs a step on the pool; `repeats` counts the times it met an outage.
  void run(const std::string& attempt, Step step, int repeats = 0) {
    const auto found = entries_.find(attempt);
    if (found == entries_.end() || found->second.stepping) return;
    Entry& entry = found->second;
    if (entry.cancelled) {
      entry.ending = true;
      step = [this](Trajectory& t) { return steps_.finish(t, JobOutcome::kCancelled, ""); };
    } else if (stopping_) {
      return release(attempt);
    }
    entry.stepping = true;
    entry.waiting = Waiting::kNothing;
    pool_->submit([this, attempt, step = std::move(step), repeats, trajectory = entry.trajectory] {
      const int commits = trajectory->commits;
      Result<Action> result = step(*trajectory);
      const bool committed = trajectory->commits != commits;
      // The trajectory is handed back before the engine can see it again.
      events_->post([this, attempt, repeats, result = std::move(result),
                     next = committed ? Step([this](Trajectory& t) { return steps_.resume(t); }) : step] {
        stepped(attempt, result, next, repeats);
      });
    });
  }

  void stepped(const std::string& attempt, const Result<Action>& result, const Step& again, int repeats) {
    const auto found = entries_.find(attempt);
    if (found == entries_.end()) return;  // its lease was lost
    Entry& entry = found->second;
    entry.stepping = false;
    if (result.ok() && std::holds_alternative<Ended>(*result)) return drop(attempt);
    if (!result.ok() && result.status().code() == ErrorCode::kStale) {
      spdlog::warn("job {}: its lease is another worker's; dropped", entry.trajectory->claimed.lease.job);
      return drop(attempt);
    }
    // A cancelled job whose end did not reach Redis goes the way of any outage.
    if (result.ok() && entry.cancelled) return run(attempt, again);
    if (stopping_) return release(attempt);
    if (result.ok()) return wait_outside(attempt, entry, *result);
    repeat_or_fail(attempt, result.status(), again, repeats);
  }

  void repeat_or_fail(const std::string& attempt, const Status& status, const Step& again, int repeats) {
    if (may_pass(status) && repeats < kRepeats) {
      if (repeats == 0) spdlog::warn("a step waits for better times: {}", status.to_string());
      const int64_t delay = std::min(kRepeatMs << std::min(repeats, 10), kLongestRepeatMs);
      return events_->post_later(delay,
                                 [this, attempt, again, repeats] { run(attempt, again, repeats + 1); });
    }
    if (!entries_.at(attempt).ending)
      return fail(attempt, FailureKind::kInfra, status.to_string(), std::nullopt);
    spdlog::error("a job cannot be given back, its lease runs out: {}", status.to_string());
    drop(attempt);
  }

  void wait_outside(const std::string& attempt, Entry& entry, const Action& action) {
    if (const auto* call = std::get_if<CallModel>(&action)) {
      entry.waiting = Waiting::kModel;
      const int64_t begin_ms = parts_.clock->unix_ms();
      parts_.llm->submit(call->request,
                         [this, events = events_, attempt, key = call->key, begin_ms](ChatOutcome outcome) {
                           events->post([this, attempt, key, begin_ms, outcome = std::move(outcome)] {
                             on_model(attempt, key, begin_ms, outcome);
                           });
                         });
    } else if (const auto* compile = std::get_if<StartCompile>(&action)) {
      entry.waiting = Waiting::kCompiler;
      parts_.compiler->submit(compile->job, [this, events = events_, attempt](CompileRecord record) {
        events->post([this, attempt, record = std::move(record)] { on_compiled(attempt, record); });
      });
    } else if (const auto* profile = std::get_if<StartProfile>(&action)) {
      entry.waiting = Waiting::kProfiler;
      parts_.profile(profile->request, [this, events = events_, attempt](Result<Verdict> verdict) {
        events->post([this, attempt, verdict = std::move(verdict)] { on_verdict(attempt, verdict); });
      });
    }
  }

  // The entry, if it waits for exactly that; late answers find none.
  bool waits_for(const std::string& attempt, Waiting what) const {
    const auto found = entries_.find(attempt);
    return found != entries_.end() && found->second.waiting == what;
  }

  void on_model(const std::string& attempt, const std::string& key, int64_t begin_ms,
                const ChatOutcome& outcome) {
    const auto* reply = std::get_if<ChatReply>(&outcome);
    if (!waits_for(attempt, Waiting::kModel)) {
      if (reply) bank(key, *reply, begin_ms);
      return;
    }
    if (reply)
      return run(attempt, [this, key, begin_ms, value = *reply](Trajectory& t) {
        return steps_.on_reply(t, key, value, begin_ms);
      });
    const auto& failure = std::get<ChatFailure>(outcome);
    if (failure.status == TurnStatus::kLlmTransient) {
      std::optional<std::chrono::milliseconds> after;
      if (failure.retry_after_ms) after = std::chrono::milliseconds(*failure.retry_after_ms);
      return fail(attempt, FailureKind::kProvider, failure.message, after);
    }
    const JobOutcome outcome_of_job = failure.status == TurnStatus::kContextExhausted
                                          ? JobOutcome::kContextExhausted
                                          : JobOutcome::kLlmFatal;
    end(attempt, [this, outcome_of_job, message = failure.message](Trajectory& t) {
      return steps_.finish(t, outcome_of_job, message);
    });
  }

  // A reply that was paid for, but whose job is no longer here: whoever has the job finds it.
  void bank(const std::string& key, const ChatReply& reply, int64_t begin_ms) {
    const StoredReply value{reply.text,     reply.reasoning, reply.finish_reason,    reply.usage,
                            reply.cost_usd, begin_ms,        parts_.clock->unix_ms()};
    pool_->submit([this, key, value] {
      if (const Status status = replies_->spool(key, value); !status.ok())
        spdlog::error("a reply is not in the spool: {}", status.to_string());
      if (replies_->deliver(key, value).ok()) replies_->forget(key);
    });
  }

  void on_compiled(const std::string& attempt, const CompileRecord& record) {
    if (!waits_for(attempt, Waiting::kCompiler)) return;
    run(attempt, [this, record](Trajectory& t) { return steps_.on_compiled(t, record); });
  }

  void on_verdict(const std::string& attempt, const Result<Verdict>& verdict) {
    if (!waits_for(attempt, Waiting::kProfiler)) return;
    if (verdict.ok())
      return run(attempt, [this, value = *verdict](Trajectory& t) { return steps_.on_verdict(t, value); });
    if (verdict.status().code() == ErrorCode::kCancelled && stopping_) return release(attempt);
    if (verdict.status().code() != ErrorCode::kFull)
      return fail(attempt, FailureKind::kInfra, "profile: " + verdict.status().to_string(), std::nullopt);
    // The broker's queue is full, which is nobody's fault: ask again from the committed state.
    entries_.at(attempt).waiting = Waiting::kNothing;
    events_->post_later(
        kFullQueueMs, [this, attempt] { run(attempt, [this](Trajectory& t) { return steps_.resume(t); }); });
  }

  void fail(const std::string& attempt, FailureKind kind, const std::string& error,
            std::optional<std::chrono::milliseconds> after) {
    end(attempt, [this, kind, error, after](Trajectory& t) { return steps_.fail(t, kind, error, after); });
  }

  void on_lease(const std::string& attempt, LeaseState state) {
    const auto found = entries_.find(attempt);
    if (found == entries_.end()) return;
    if (state == LeaseState::kLost) {
      spdlog::warn("job {}: the lease was lost; dropped", found->second.trajectory->claimed.lease.job);
      return drop(attempt);
    }
    if (found->second.cancelled) return;
    found->second.cancelled = true;
    if (!found->second.stepping) run(attempt, [this](Trajectory& t) { return steps_.resume(t); });
  }

  void drop(const std::string& attempt) {
    keeper_->remove(attempt);
    entries_.erase(attempt);
    wake_claimer();
  }

  void release(const std::string& attempt) {
    const Lease lease = entries_.at(attempt).trajectory->claimed.lease;
    if (const Status status = queue_.release({&lease, 1}); !status.ok())
      spdlog::warn("job {} was not given back, its lease runs out: {}", lease.job, status.to_string());
    drop(attempt);
  }

  void release_waiting() {
    std::vector<Lease> leases;
    for (const auto& [attempt, entry] : entries_)
      if (!entry.stepping) leases.push_back(entry.trajectory->claimed.lease);
    if (leases.empty()) return;
    if (const Status status = queue_.release(leases); !status.ok())
      spdlog::warn("{} jobs were not given back, their leases run out: {}", leases.size(),
                   status.to_string());
    for (const Lease& lease : leases) drop(attempt_of(lease));
  }

  void deliver_leftovers() {
    pool_->submit([this] {
      const auto delivered = replies_->deliver_leftovers();
      if (!delivered.ok()) {
        spdlog::warn("replies in the spool wait for the store: {}", delivered.status().to_string());
      } else if (*delivered > 0) {
        spdlog::info("{} replies left in the spool were delivered", *delivered);
      }
    });
    events_->post_later(kLeftoversEveryMs, [this] {
      if (!stopping_) deliver_leftovers();
    });
  }

  const Parts parts_;
  const Options options_;
  JobQueue queue_;
  Registry registry_;
  SweepCache sweeps_;
  const std::unique_ptr<ReplyBank> replies_;
  Steps steps_;
  const std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::unordered_map<std::string, Entry>
      entries_;  // by attempt_of(); the engine's thread's own, like the flags
  bool stopping_ = false;
  bool last_claims_are_in_ = false;
  std::unique_ptr<StepPool> pool_;
  std::unique_ptr<LeaseKeeper> keeper_;
  std::mutex claimer_mutex_;  // guards claimer_
  std::unique_ptr<Claimer> claimer_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(Parts parts, Options options) {
  FIXIT_ASSIGN_OR_RETURN(std::unique_ptr<ReplyBank> replies, ReplyBank::open(options.spool, *parts.store));
  return std::unique_ptr<Engine>(new EventEngine(std::move(parts), std::move(options), std::move(replies)));
}

}  // namespace fixit

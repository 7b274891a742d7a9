// The steps of a trajectory. Each reads and writes store and Redis, commits what it found, and says what
// comes next.
#pragma once

#include <chrono>

#include "core/base/clock.h"
#include "worker/engine/records.h"
#include "worker/engine/reply_bank.h"

namespace fixit {

// After kUnavailable, kTimeout or kFull a step may be repeated as it was, unless it has committed (commits
// has grown): then the trajectory goes on with resume(). Progress changes only once its commit has succeeded.
// kStale: the job is another worker's now. Other errors are charged to the job's infrastructure budget by the
// caller. Thread-safe for different trajectories; steps block.
class Steps {
 public:
  struct Parts {
    JobQueue& queue;
    BlobStore& store;
    SweepCache& sweeps;
    ReplyBank& replies;
    const Clock& clock;
    std::string worker;
    std::chrono::milliseconds lease;
  };
  explicit Steps(Parts parts) : parts_(std::move(parts)) {}

  // Reads payload, progress and sweep of a claimed job, then goes on where it was committed last.
  Result<Action> begin(Trajectory& t);
  // Goes on after the last commit.
  Result<Action> resume(Trajectory& t) { return advance(t); }
  // A model's reply has come. `begin_ms`: when it was asked for.
  Result<Action> on_reply(Trajectory& t, const std::string& key, const ChatReply& reply, int64_t begin_ms);
  Result<Action> on_compiled(Trajectory& t, const CompileRecord& record);
  Result<Action> on_verdict(Trajectory& t, const Verdict& verdict);

  // Ends the job for good.
  Result<Action> finish(Trajectory& t, JobOutcome outcome, const std::string& error);
  // Gives it back, charged to a retry budget.
  Result<Action> fail(Trajectory& t, FailureKind kind, const std::string& error,
                      std::optional<std::chrono::milliseconds> retry_after);

 private:
  Result<Action> advance(Trajectory& t);
  Result<Action> accept(Trajectory& t, const std::string& key, const StoredReply& reply);
  // The stored reply to the request where there is one, else a call.
  Result<Action> ask(Trajectory& t, ChatRequest request);
  Result<ChatRequest> request_of(const Trajectory& t, std::vector<ChatMessage> messages);
  // `progress` with a reply's spend and text in its current turn.
  Result<JobProgress> with_reply(const Trajectory& t, const StoredReply& reply);
  Status commit(Trajectory& t, JobProgress progress, std::span<const JobEvent> events);
  int64_t now() const { return parts_.clock.unix_ms(); }

  // Kernels: rollout, repair, evaluate (kernel_steps.cpp).
  Result<Action> advance_kernel(Trajectory& t);
  Result<std::vector<ChatMessage>> kernel_messages(Trajectory& t);
  Result<Action> compile(Trajectory& t);
  Result<Action> profile(Trajectory& t);
  struct TurnEnd {
    TurnStatus status = TurnStatus::kPending;
    std::string reason;
    BlobHash source;
    const CompileRecord* compile = nullptr;
    const Verdict* verdict = nullptr;
    std::map<std::string, int64_t> times;
  };
  Result<Action> end_turn(Trajectory& t, const TurnEnd& end);
  Result<BlobHash> store_feedback(const Trajectory& t, const TurnEnd& end);

  // Rationales (rationale_steps.cpp).
  Result<Action> advance_rationale(Trajectory& t);
  Result<Action> accept_rationale(Trajectory& t, const std::string& key, const StoredReply& reply);

  const Parts parts_;
};

// What a kernel job aims at: the sweep's values, for a repair its recipe's.
double target_speedup(const Trajectory& t);
int turn_limit(const Trajectory& t);
bool budget_is_spent(const Trajectory& t, const JobProgress& progress);

}  // namespace fixit

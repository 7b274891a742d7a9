#include "coordinator/service/job_answers.h"

#include <algorithm>
#include <iterator>

namespace fixit {
namespace {

template <typename Record>
bool is_of_job(const std::string& data, const std::string& job) {
  const auto record = decode<Record>(data);
  return record.ok() && record->axes.job == job;
}

}  // namespace

void JobAnswers::await(const JobRef& job, Answer answer) {
  const std::lock_guard lock(mutex_);
  waiters_.push_back({job, std::move(answer)});
}

void JobAnswers::serve() {
  std::vector<Waiter> ready;
  {
    const std::lock_guard lock(mutex_);
    const auto first_ready =
        std::stable_partition(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
          return ledger_.sweep(waiter.job.sweep) && !ledger_.ended(waiter.job.sweep, waiter.job.job);
        });
    std::move(first_ready, waiters_.end(), std::back_inserter(ready));
    waiters_.erase(first_ready, waiters_.end());
  }
  for (const Waiter& waiter : ready) waiter.answer(result_of(waiter.job));
}

Result<JobResult> JobAnswers::result_of(const JobRef& job) const {
  if (!ledger_.sweep(job.sweep)) return Status(ErrorCode::kNotFound, "no sweep named " + job.sweep);
  if (auto result = ledger_.evaluation(job.sweep, job.job)) return *std::move(result);
  JobResult result;
  FIXIT_RETURN_IF_ERROR(read_journal(journal_, [&](const JournalRecord& record) {
    if (record.sweep != job.sweep) return true;
    if (record.kind == JournalKind::kTurn && is_of_job<TurnRecord>(record.data, job.job))
      result.turn = record.data;
    if (record.kind == JournalKind::kJobEnd && is_of_job<JobEndRecord>(record.data, job.job)) {
      result.end = record.data;
      return false;
    }
    return true;
  }));
  return result;
}

}  // namespace fixit

// Answers those who wait for a job's end.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/collect/ledger.h"
#include "core/wire/message.h"

namespace fixit {

// await() may be called from any thread and never blocks; serve() is driven by one thread and calls the
// answers.
class JobAnswers {
 public:
  using Answer = std::function<void(Result<JobResult>)>;
  JobAnswers(const Ledger& ledger, std::filesystem::path journal)
      : ledger_(ledger), journal_(std::move(journal)) {}

  // `answer` is called once the journal holds the job's end, or with kNotFound if its sweep is unknown.
  // Waiters that are left when the coordinator stops leading are dropped: they ask the next one.
  void await(const JobRef& job, Answer answer);
  void serve();

 private:
  struct Waiter {
    JobRef job;
    Answer answer;
  };
  Result<JobResult> result_of(const JobRef& job) const;

  const Ledger& ledger_;
  const std::filesystem::path journal_;
  std::mutex mutex_;
  std::vector<Waiter> waiters_;
};

}  // namespace fixit

#include "coordinator/service/launcher.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "coordinator/chain/chain.h"
#include "coordinator/launch/launch.h"

namespace fixit {
namespace {

// The name becomes a folder and part of keys.
bool is_sweep_name(const std::string& name) {
  const auto is_alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 64 || !is_alnum(name[0])) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; });
}

Status conflict(const std::string& name) {
  return Status(
      ErrorCode::kConflict,
      "a sweep named " + name +
          " was launched before with other content (sweep, problems, models, packs or recipe differ); "
          "give the changed sweep another name");
}

std::vector<BlobHash> blobs_of(const FrozenSweep& sweep) {
  std::vector<BlobHash> blobs;
  for (const FrozenModel& model : sweep.models) blobs.push_back(model.replies);
  for (const FrozenProblem& problem : sweep.problems)
    for (const FrozenWorkload& workload : problem.workloads)
      for (const auto& [path, hash] : workload.tensors) blobs.push_back(hash);
  blobs.push_back(sweep.evaluate_source);
  std::erase(blobs, BlobHash());
  return blobs;
}

}  // namespace

Status Launcher::check(const FrozenSweep& sweep) {
  if (!is_sweep_name(sweep.sweep.name))
    return Status(ErrorCode::kInvalid, "a sweep's name must match [a-z0-9][a-z0-9._-]{0,63}");
  for (const BlobHash& hash : blobs_of(sweep))
    if (!store_.contains(hash))
      return Status(ErrorCode::kInvalid,
                    "the store lacks blob " + hash + " that the sweep refers to; put it before the launch");
  return store_.sync();
}

Result<std::shared_ptr<const FrozenSweep>> Launcher::record(FrozenSweep sweep) {
  const std::string name = sweep.sweep.name;
  if (const auto known = ledger_.sweep(name)) {
    if (known->hash() != sweep.hash()) return conflict(name);
    const Status status = registry_.put_sweep(*known);  // Redis may have forgotten it
    if (status.code() == ErrorCode::kConflict) return conflict(name);
    FIXIT_RETURN_IF_ERROR(status);
    return known;
  }
  if (sweep.launched_ms == 0) sweep.launched_ms = clock_.unix_ms();
  const Status status = registry_.put_sweep(sweep);
  if (status.code() == ErrorCode::kConflict) return conflict(name);
  FIXIT_RETURN_IF_ERROR(status);
  JournalRecord record;
  record.kind = JournalKind::kSweep;
  record.sweep = name;
  record.data = encode(sweep);
  FIXIT_RETURN_IF_ERROR(ledger_.write({record}));
  return ledger_.sweep(name);
}

Result<Launched> Launcher::launch(const LaunchRequest& request) {
  const std::lock_guard lock(mutex_);
  FIXIT_RETURN_IF_ERROR(check(request.sweep));
  std::vector<PlannedJob> jobs = plan_jobs(request.sweep);
  if (jobs.empty()) return Status(ErrorCode::kInvalid, "the sweep has no jobs");
  const bool fresh = !ledger_.sweep(request.sweep.sweep.name);
  FIXIT_ASSIGN_OR_RETURN(const auto sweep, record(request.sweep));
  const std::string& name = sweep->sweep.name;
  Launched launched;
  launched.jobs = static_cast<int64_t>(jobs.size());
  if (!sweep->evaluate_source.empty())
    for (const PlannedJob& planned : jobs) launched.job_ids.push_back(planned.job.id);
  const auto held = ledger_.hold_job_records();
  std::erase_if(jobs, [&](const PlannedJob& planned) { return ledger_.ended(name, planned.job.id); });
  FIXIT_ASSIGN_OR_RETURN(const JobQueue::Enqueued enqueued, enqueue_jobs(queue_, *sweep, jobs));
  // The chain enqueues too as soon as it sees the sweep; of a fresh one every job is new, whoever was
  // quicker.
  launched.enqueued = fresh ? launched.jobs : enqueued.added;
  launched.known = launched.jobs - launched.enqueued;
  spdlog::info("sweep {}: {} jobs, {} enqueued", name, launched.jobs, launched.enqueued);
  return launched;
}

}  // namespace fixit

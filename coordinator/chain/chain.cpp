#include "coordinator/chain/chain.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "coordinator/chain/chain_jobs.h"
#include "coordinator/chain/mining.h"
#include "coordinator/chain/rows.h"
#include "core/base/file.h"

namespace fixit {
namespace {

constexpr size_t kEnqueueChunk = 1000;

JournalRecord record_of(JournalKind kind, const std::string& sweep, std::string data) {
  JournalRecord record;
  record.kind = kind;
  record.sweep = sweep;
  record.data = std::move(data);
  return record;
}

bool is_over(SweepPhase phase) {
  return phase == SweepPhase::kDone || phase == SweepPhase::kFailed;
}

// A blob that is missing or damaged stays so; everything else may work later.
bool is_final(const Status& status) {
  return status.code() == ErrorCode::kNotFound || status.code() == ErrorCode::kCorrupt ||
         status.code() == ErrorCode::kInvalid;
}

}  // namespace

Result<std::vector<PlannedJob>> jobs_of_phase(const SweepRecords& records, const std::string& phase) {
  const RecipeConfig& recipe = *records.sweep.recipe;
  if (phase == "repair") return repair_jobs(records, mine_failures(records, recipe));
  return rationale_jobs(records, verified_repairs(records, recipe));
}

Result<JobQueue::Enqueued> enqueue_jobs(JobQueue& queue, const FrozenSweep& sweep,
                                        const std::vector<PlannedJob>& jobs) {
  std::map<Lane, std::vector<NewJob>> by_lane;
  for (const PlannedJob& planned : jobs) by_lane[planned.lane].push_back(planned.job);
  JobQueue::Enqueued total;
  for (const auto& [lane, lane_jobs] : by_lane) {
    const std::span<const NewJob> all(lane_jobs);
    for (size_t begin = 0; begin < all.size(); begin += kEnqueueChunk) {
      const auto chunk = all.subspan(begin, std::min(kEnqueueChunk, all.size() - begin));
      FIXIT_ASSIGN_OR_RETURN(const JobQueue::Enqueued enqueued,
                             queue.enqueue(lane, sweep.sweep.name, sweep.sweep.priority, chunk));
      total.added += enqueued.added;
      total.existing += enqueued.existing;
    }
  }
  return total;
}

Chain::Chain(Ledger& ledger, JobQueue& queue, Registry& registry, BlobStore& store, const Clock& clock,
             Options options)
    : ledger_(ledger),
      queue_(queue),
      registry_(registry),
      store_(store),
      clock_(clock),
      options_(std::move(options)) {}

void Chain::tick() {
  for (const std::string& sweep : ledger_.sweeps()) {
    if (is_over(ledger_.phase(sweep))) continue;
    Watched& watched = watched_[sweep];
    Status status = advance(sweep, watched);
    if (status.ok()) status = revive(sweep, watched);
    if (status.ok()) {
      failing_.erase(sweep);
    } else if (failing_.insert(sweep).second) {
      spdlog::error("sweep {}: {}", sweep, status.to_string());
    }
    ledger_.set_trouble(sweep, status.ok() ? "" : status.to_string());
  }
}

Status Chain::advance(const std::string& sweep, Watched& watched) {
  while (true) {
    const SweepPhase phase = ledger_.phase(sweep);
    if (is_over(phase)) {
      spdlog::info("sweep {}: {}", sweep, name_of(phase));
      return {};
    }
    if (phase == SweepPhase::kBuild) {
      FIXIT_RETURN_IF_ERROR(build(sweep));
      continue;
    }
    if (phase != SweepPhase::kRollout && !ledger_.plan(sweep, std::string(name_of(phase)))) {
      FIXIT_RETURN_IF_ERROR(decide(sweep, phase));
      continue;  // a phase without jobs is over at once
    }
    if (watched.enqueued.contains(phase)) return {};
    FIXIT_RETURN_IF_ERROR(enqueue_phase(sweep, phase, nullptr));
    watched.enqueued.insert(phase);
  }
}

Status Chain::decide(const std::string& sweep, SweepPhase phase) {
  FIXIT_ASSIGN_OR_RETURN(const SweepRecords records, read_sweep_records(options_.journal, sweep));
  PlanRecord plan;
  plan.phase = name_of(phase);
  auto jobs = jobs_of_phase(records, plan.phase);
  if (!jobs.ok()) {
    // The frozen sweep cannot serve its recipe; no later attempt would.
    DatasetRecord failed;
    failed.recipe = records.sweep.recipe->name;
    failed.error = jobs.status().to_string();
    return ledger_.write({record_of(JournalKind::kDataset, sweep, encode(failed))});
  }
  for (const PlannedJob& planned : *jobs) plan.jobs.push_back(planned.job.id);
  spdlog::info("sweep {}: {} {} jobs", sweep, plan.jobs.size(), plan.phase);
  return ledger_.write({record_of(JournalKind::kPlan, sweep, encode(plan))});
}

Result<std::vector<PlannedJob>> Chain::open_jobs(const std::string& sweep, SweepPhase phase) {
  const auto frozen = ledger_.sweep(sweep);
  std::vector<PlannedJob> jobs;
  if (phase == SweepPhase::kRollout) {
    jobs = plan_jobs(*frozen);
  } else {
    const std::string name(name_of(phase));
    const std::optional<PlanRecord> plan = ledger_.plan(sweep, name);
    if (!plan || plan->jobs.empty()) return jobs;
    FIXIT_ASSIGN_OR_RETURN(const SweepRecords records, read_sweep_records(options_.journal, sweep));
    FIXIT_ASSIGN_OR_RETURN(jobs, jobs_of_phase(records, name));
    const std::set<std::string> planned(plan->jobs.begin(), plan->jobs.end());
    std::erase_if(jobs, [&](const PlannedJob& job) { return !planned.contains(job.job.id); });
    if (jobs.size() != planned.size())
      return Status(ErrorCode::kInternal,
                    "the journal no longer gives the " + name + " jobs that it planned");
  }
  std::erase_if(jobs, [&](const PlannedJob& job) { return ledger_.ended(sweep, job.job.id); });
  return jobs;
}

Status Chain::enqueue_phase(const std::string& sweep, SweepPhase phase, int64_t* added) {
  const auto held = ledger_.hold_job_records();
  FIXIT_ASSIGN_OR_RETURN(const std::vector<PlannedJob> jobs, open_jobs(sweep, phase));
  const auto frozen = ledger_.sweep(sweep);
  FIXIT_RETURN_IF_ERROR(registry_.put_sweep(*frozen));  // workers read it there, and Redis may have lost it
  FIXIT_ASSIGN_OR_RETURN(const JobQueue::Enqueued enqueued, enqueue_jobs(queue_, *frozen, jobs));
  if (added) *added = enqueued.added;
  return {};
}

Status Chain::build(const std::string& sweep) {
  FIXIT_ASSIGN_OR_RETURN(const SweepRecords records, read_sweep_records(options_.journal, sweep));
  const std::filesystem::path folder = options_.datasets / sweep;
  DatasetRecord dataset;
  dataset.recipe = records.sweep.recipe->name;
  dataset.folder = folder.string();
  const auto built = build_rows(records, store_);
  if (built.ok()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return Status(ErrorCode::kUnavailable, folder.string() + ": " + error.message());
    FIXIT_RETURN_IF_ERROR(write_file_durably(folder / "rows.jsonl", built->jsonl));
    dataset.failures = built->failures;
    dataset.repairs = built->repairs;
    dataset.rationales = built->rationales;
    dataset.rows = built->rows;
    dataset.rows_sha256 = sha256(built->jsonl);
    spdlog::info("sweep {}: {} rows in {}", sweep, built->rows, (folder / "rows.jsonl").string());
  } else if (is_final(built.status())) {
    dataset.error = built.status().to_string();
    spdlog::error("sweep {}: no rows: {}", sweep, dataset.error);
  } else {
    return built.status();
  }
  return ledger_.write({record_of(JournalKind::kDataset, sweep, encode(dataset))});
}

// A sweep with open jobs of which none is in the queue: Redis lost them. They are enqueued again, which
// leaves existing records alone. So is a sweep registered again that Redis lost.
Status Chain::revive(const std::string& sweep, Watched& watched) {
  const int64_t now_ms = clock_.steady_ms();
  const int64_t version = ledger_.version(sweep);
  if (version != watched.version || !ledger_.fault().empty()) {
    watched.version = version;
    watched.since_ms = now_ms;
    watched.stalled.clear();
    return {};
  }
  const SweepPhase phase = ledger_.phase(sweep);
  if (is_over(phase)) return {};
  if (now_ms - watched.since_ms < options_.stall_ms)
    return Status(watched.stalled.empty() ? ErrorCode::kOk : ErrorCode::kInternal, watched.stalled);
  watched.since_ms = now_ms;
  // Redis may have lost the sweep and kept its jobs: those that were enqueued after the loss.
  FIXIT_RETURN_IF_ERROR(registry_.put_sweep(*ledger_.sweep(sweep)));
  FIXIT_ASSIGN_OR_RETURN(const std::vector<LaneSweepCounts> counts, queue_.counts());
  for (const LaneSweepCounts& lane : counts)
    if (lane.sweep == sweep && lane.ready + lane.delayed + lane.leased > 0) return {};
  int64_t added = 0;
  FIXIT_RETURN_IF_ERROR(enqueue_phase(sweep, phase, &added));
  if (added > 0) {
    spdlog::warn("sweep {}: {} jobs were missing in Redis and are enqueued again", sweep, added);
    return {};
  }
  watched.stalled =
      "jobs of phase " + std::string(name_of(phase)) +
      " are over in Redis but their ends did not reach the journal; `fixit status` shows how many are dead";
  return Status(ErrorCode::kInternal, watched.stalled);
}

}  // namespace fixit

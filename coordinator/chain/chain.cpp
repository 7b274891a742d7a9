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

Chain::Chain(Ledger& ledger, JobQueue& queue, BlobStore& store, const Clock& clock, Options options)
    : ledger_(ledger), queue_(queue), store_(store), clock_(clock), options_(std::move(options)) {}

void Chain::bury(const std::vector<std::string>& jobs) {
  const std::lock_guard lock(mutex_);
  dead_.insert(jobs.begin(), jobs.end());
}

void Chain::tick() {
  bury_dead();
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
  FIXIT_ASSIGN_OR_RETURN(const std::vector<PlannedJob> jobs, open_jobs(sweep, phase));
  FIXIT_ASSIGN_OR_RETURN(const JobQueue::Enqueued enqueued,
                         enqueue_jobs(queue_, *ledger_.sweep(sweep), jobs));
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

// A sweep with open jobs of which none is in the queue: Redis lost them, or they are in quarantine and their
// end was not recorded (a coordinator died between the two). First they are enqueued again, which leaves
// existing records alone; what is still missing one stall later is dead.
Status Chain::revive(const std::string& sweep, Watched& watched) {
  const int64_t now_ms = clock_.steady_ms();
  const int64_t version = ledger_.version(sweep);
  if (version != watched.version || !ledger_.fault().empty()) {
    watched.version = version;
    watched.since_ms = now_ms;
    watched.enqueued_again = false;
    return {};
  }
  const SweepPhase phase = ledger_.phase(sweep);
  if (is_over(phase) || now_ms - watched.since_ms < options_.stall_ms) return {};
  watched.since_ms = now_ms;
  FIXIT_ASSIGN_OR_RETURN(const std::vector<LaneSweepCounts> counts, queue_.counts());
  for (const LaneSweepCounts& lane : counts)
    if (lane.sweep == sweep && lane.ready + lane.delayed + lane.leased > 0) return {};
  if (!watched.enqueued_again) {
    int64_t added = 0;
    FIXIT_RETURN_IF_ERROR(enqueue_phase(sweep, phase, &added));
    if (added > 0)
      spdlog::warn("sweep {}: {} jobs were missing in Redis and are enqueued again", sweep, added);
    watched.enqueued_again = added == 0;
    return {};
  }
  FIXIT_ASSIGN_OR_RETURN(const std::vector<PlannedJob> jobs, open_jobs(sweep, phase));
  return journal_dead(sweep, jobs,
                      "quarantined in the queue; the coordinator that put it there did not record why");
}

void Chain::bury_dead() {
  std::set<std::string> dead;
  {
    const std::lock_guard lock(mutex_);
    dead.swap(dead_);
  }
  if (dead.empty()) return;
  for (const std::string& sweep : ledger_.sweeps()) {
    const SweepPhase phase = ledger_.phase(sweep);
    if (is_over(phase)) continue;
    auto jobs = open_jobs(sweep, phase);
    if (!jobs.ok()) continue;  // reported by advance(); revive() finds them later
    std::erase_if(*jobs, [&](const PlannedJob& job) { return !dead.contains(job.job.id); });
    const Status status =
        journal_dead(sweep, *jobs, "its workers died holding it, more often than is allowed");
    if (!status.ok()) bury({dead.begin(), dead.end()});
  }
}

Status Chain::journal_dead(const std::string& sweep, const std::vector<PlannedJob>& jobs,
                           const std::string& error) {
  const auto frozen = ledger_.sweep(sweep);
  std::vector<JournalRecord> records;
  for (const PlannedJob& planned : jobs) {
    FIXIT_ASSIGN_OR_RETURN(const JobPayload payload, decode<JobPayload>(planned.job.payload));
    JobEndRecord end;
    end.axes = axes_of(*frozen, planned.job.id, payload);
    end.origin = payload.origin;
    end.outcome = JobOutcome::kDead;
    end.error = error;
    end.ended_ms = clock_.unix_ms();
    JournalRecord record = record_of(JournalKind::kJobEnd, sweep, encode(end));
    record.lane = planned.lane.name();
    records.push_back(std::move(record));
    spdlog::error("sweep {}: job {} on lane {} is dead: {}", sweep, planned.job.id, planned.lane.name(),
                  error);
  }
  return records.empty() ? Status() : ledger_.write(std::move(records));
}

}  // namespace fixit

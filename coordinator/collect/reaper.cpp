#include "coordinator/collect/reaper.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "coordinator/launch/launch.h"

namespace fixit {
namespace {

constexpr int kReclaimBatch = 1000;

}  // namespace

Reaper::Reaper(Redis& redis, JobQueue& queue, Registry& registry, const Ledger& ledger, const Clock& clock,
               Options options)
    : queue_(queue),
      registry_(registry),
      ledger_(ledger),
      clock_(clock),
      options_(std::move(options)),
      watch_(redis, clock, {}),
      gate_(options_.max_queue) {}

void Reaper::see(const BrokerView& view) {
  const std::lock_guard lock(mutex_);
  view_ = view;
}

void Reaper::tick() {
  const Status status = reap();
  if (!status.ok() && !failing_) spdlog::warn("reaper: {}", status.to_string());
  if (status.ok() && failing_) spdlog::info("reaper: works again");
  failing_ = !status.ok();
}

Status Reaper::reap() {
  FIXIT_ASSIGN_OR_RETURN(const std::optional<std::string> gap, watch_.look());
  if (gap) must_extend_ = gap;
  FIXIT_ASSIGN_OR_RETURN(const std::vector<Lane> lanes, queue_.lanes());
  if (must_extend_) FIXIT_RETURN_IF_ERROR(extend_leases(lanes));
  for (const Lane& lane : lanes) FIXIT_RETURN_IF_ERROR(reclaim(lane));
  std::optional<BrokerView> view;
  {
    const std::lock_guard lock(mutex_);
    view = view_;
  }
  if (!view) return {};
  gate_.see(*view);
  FIXIT_RETURN_IF_ERROR(park(lanes));
  return beat_profilers(*view);
}

Status Reaper::extend_leases(const std::vector<Lane>& lanes) {
  for (const Lane& lane : lanes)
    FIXIT_RETURN_IF_ERROR(queue_.extend_all(lane, std::chrono::milliseconds(options_.lease_ms)));
  spdlog::info("reaper: every lease has a whole fresh term: {}", *must_extend_);
  must_extend_.reset();
  parked_.clear();  // Redis may have lost the flags: set them again
  return {};
}

Status Reaper::reclaim(const Lane& lane) {
  FIXIT_ASSIGN_OR_RETURN(const JobQueue::Reclaimed reclaimed, queue_.reclaim(lane, kReclaimBatch));
  if (reclaimed.requeued > 0)
    spdlog::info("reaper: lane {}: {} jobs requeued", lane.name(), reclaimed.requeued);
  return bury(lane, reclaimed.dead);
}

// The ends of jobs that took too many workers with them: appended to the lane's events, and so journaled like
// every other end. Until then each reclaim names them again, so none is forgotten.
Status Reaper::bury(const Lane& lane, const std::vector<std::string>& jobs) {
  if (jobs.empty()) return {};
  FIXIT_ASSIGN_OR_RETURN(const std::vector<JobView> views, queue_.inspect(lane, jobs));
  for (const JobView& view : views) {
    const auto sweep = ledger_.sweep(view.sweep);
    const auto payload = decode<JobPayload>(view.payload);
    if (!sweep || !payload.ok()) {
      spdlog::error("reaper: lane {}: dead job {} of sweep {} cannot be read and has no end", lane.name(),
                    view.job, view.sweep);
      continue;
    }
    JobEndRecord end;
    end.axes = axes_of(*sweep, view.job, *payload);
    end.origin = payload->origin;
    end.outcome = JobOutcome::kDead;
    end.error = fmt::format("{} workers died holding it, the last was {}", view.crashes, view.worker);
    end.ended_ms = clock_.unix_ms();
    if (const auto progress = decode<JobProgress>(view.progress); progress.ok()) {
      end.turns = static_cast<int>(progress->turns.size());
      if (progress->best_speedup > 0) end.best_speedup = progress->best_speedup;
    }
    FIXIT_RETURN_IF_ERROR(queue_.bury(lane, view.job, JobEvent{EventKind::kJobEnd, encode(end)}));
    spdlog::error("sweep {}: job {} on lane {} is quarantined: {}", view.sweep, view.job, lane.name(),
                  end.error);
  }
  return {};
}

std::string Reaper::write_fault() const {
  const std::string fault = ledger_.fault();
  if (!fault.empty()) return "the journal cannot be written: " + fault;
  for (const std::filesystem::path& folder : options_.folders) {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(folder, error);
    if (!error && space.available < options_.min_free_bytes)
      return fmt::format("less than {} MiB are free on the disk of {}", options_.min_free_bytes >> 20,
                         folder.string());
  }
  return {};
}

Status Reaper::park(const std::vector<Lane>& lanes) {
  gate_.set_write_fault(write_fault());
  for (const Lane& lane : lanes) {
    const std::string reason = gate_.reason(lane);
    const auto known = parked_.find(lane.name());
    if (known != parked_.end() && known->second == reason) continue;
    FIXIT_RETURN_IF_ERROR(queue_.set_parked(lane, !reason.empty(), reason));
    if (!reason.empty()) spdlog::warn("lane {} gives no work: {}", lane.name(), reason);
    if (reason.empty() && known != parked_.end()) spdlog::info("lane {} gives work again", lane.name());
    parked_[lane.name()] = reason;
  }
  return {};
}

Status Reaper::beat_profilers(const BrokerView& view) {
  std::set<std::string> live;
  for (const ProfilerView& profiler : view.profilers) {
    live.insert(profiler.id);
    ProfilerInfo info;
    info.id = profiler.id;
    info.host = profiler.host;
    info.gpu = profiler.capability.gpu;
    info.device = profiler.capability.device;
    info.running = profiler.running;
    info.busy_share = profiler.busy_share;
    info.heartbeat_ms = clock_.unix_ms();
    FIXIT_RETURN_IF_ERROR(registry_.beat_profiler(info));
  }
  for (const std::string& id : profilers_)
    if (!live.contains(id)) FIXIT_RETURN_IF_ERROR(registry_.remove_peer(id));
  profilers_ = std::move(live);
  return {};
}

}  // namespace fixit

#include "coordinator/collect/collector.h"

#include <spdlog/spdlog.h>

namespace fixit {
namespace {

struct OpenedEvent {  // what the collector must know of an event; its bytes go to the journal as they are
  JournalKind kind = JournalKind::kTurn;
  std::string sweep;
  bool finishes = false;  // the job's record in Redis may go; a dead job's stays in quarantine
};

template <typename Record>
Result<OpenedEvent> open_as(JournalKind kind, const std::string& data) {
  FIXIT_ASSIGN_OR_RETURN(const Record record, decode<Record>(data));
  OpenedEvent opened{kind, record.axes.sweep, false};
  if constexpr (std::is_same_v<Record, JobEndRecord>) opened.finishes = record.outcome != JobOutcome::kDead;
  return opened;
}

Result<OpenedEvent> open_event(const JobEvent& event) {
  switch (event.kind) {
    case EventKind::kTurn:
      return open_as<TurnRecord>(JournalKind::kTurn, event.data);
    case EventKind::kRationale:
      return open_as<RationaleRecord>(JournalKind::kRationale, event.data);
    case EventKind::kJobEnd:
      return open_as<JobEndRecord>(JournalKind::kJobEnd, event.data);
  }
  return Status(ErrorCode::kCorrupt, "unknown kind of event");
}

}  // namespace

Collector::Collector(JobQueue& queue, Registry& registry, Ledger& ledger, const Clock& clock, Options options)
    : queue_(queue), registry_(registry), ledger_(ledger), clock_(clock), options_(options) {}

bool Collector::tick() {
  bool more = false;
  Status fault;
  auto lanes = queue_.lanes();
  if (!lanes.ok()) fault = lanes.status();
  if (lanes.ok()) {
    for (const Lane& lane : *lanes) {
      const auto collected = collect(lane);
      if (collected.ok())
        more = more || *collected;
      else
        fault = collected.status().with_context("lane " + lane.name());
    }
  }
  if (!fault.ok() && outage_.empty()) spdlog::warn("collector: {}", fault.to_string());
  if (!fault.ok()) published_.clear();  // Redis may come back without what it had
  if (fault.ok() && !outage_.empty()) spdlog::info("collector: collecting again");
  outage_ = fault.ok() ? "" : fault.to_string();
  if (fault.ok() || !ledger_.fault().empty()) publish_states();
  return more && fault.ok();
}

Result<bool> Collector::collect(const Lane& lane) {
  LaneProgress& progress = lanes_[lane.name()];
  FIXIT_ASSIGN_OR_RETURN(const std::vector<StreamedEvent> events,
                         queue_.read_events(lane, progress.cursor, options_.batch));
  if (!events.empty()) FIXIT_RETURN_IF_ERROR(journal_new(lane, events, progress));
  if (progress.must_forget) forget(lane, progress);
  return static_cast<int>(events.size()) >= options_.batch;
}

Status Collector::journal_new(const Lane& lane, const std::vector<StreamedEvent>& events,
                              LaneProgress& progress) {
  const std::string last = ledger_.position(lane.name());
  std::vector<JournalRecord> records;
  std::vector<std::string> finished;
  for (const StreamedEvent& streamed : events) {
    const auto opened = open_event(streamed.event);
    if (!opened.ok()) {
      spdlog::error("collector: event {} of job {} on lane {} is dropped: {}", streamed.position,
                    streamed.job, lane.name(), opened.status().to_string());
      continue;
    }
    if (opened->finishes) finished.push_back(streamed.job);
    if (!position_after(streamed.position, last)) continue;
    JournalRecord record;
    record.kind = opened->kind;
    record.sweep = opened->sweep;
    record.data = streamed.event.data;
    record.lane = lane.name();
    record.position = streamed.position;
    records.push_back(std::move(record));
  }
  if (!records.empty()) FIXIT_RETURN_IF_ERROR(ledger_.write(std::move(records)));
  progress.cursor = progress.journaled = events.back().position;
  progress.finished.insert(progress.finished.end(), finished.begin(), finished.end());
  progress.must_forget = true;
  return {};
}

void Collector::forget(const Lane& lane, LaneProgress& progress) {
  const auto held = ledger_.hold_job_records();
  const Status status = queue_.forget(lane, progress.journaled, progress.finished);
  if (!status.ok()) {
    spdlog::warn("collector: lane {} keeps journaled events for now: {}", lane.name(), status.to_string());
    return;
  }
  progress.finished.clear();
  progress.must_forget = false;
}

void Collector::publish_states() {
  const int64_t now_ms = clock_.steady_ms();
  if (now_ms - published_ms_ < options_.state_period_ms) return;
  published_ms_ = now_ms;
  for (const std::string& name : ledger_.sweeps()) {
    const int64_t version = ledger_.version(name);
    const auto known = published_.find(name);
    if (known != published_.end() && known->second == version) continue;
    if (!registry_.put_state(ledger_.state(name)).ok()) return;
    published_[name] = version;
  }
}

}  // namespace fixit

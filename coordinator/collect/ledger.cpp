#include "coordinator/collect/ledger.h"

#include <spdlog/spdlog.h>

#include <charconv>

#include "coordinator/launch/launch.h"

namespace fixit {
namespace {

std::pair<uint64_t, uint64_t> parse_position(std::string_view text) {
  std::pair<uint64_t, uint64_t> position{0, 0};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, position.first);
  if (error == std::errc() && rest != end) std::from_chars(rest + 1, end, position.second);
  return position;
}

// Of jobs whose kind the phase waits for.
int64_t count_of(const std::map<JobKind, int64_t>& counts, JobKind kind) {
  const auto found = counts.find(kind);
  return found == counts.end() ? 0 : found->second;
}

int64_t first_stage_ended(const std::map<JobKind, int64_t>& counts) {
  return count_of(counts, JobKind::kRollout) + count_of(counts, JobKind::kEvaluate);
}

}  // namespace

bool position_after(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return !a.empty();
  return parse_position(a) > parse_position(b);
}

Ledger::Ledger(std::filesystem::path journal, int64_t epoch, BlobStore& store, const Clock& clock)
    : journal_(std::move(journal)), epoch_(epoch), store_(store), clock_(clock) {}

Result<std::unique_ptr<Ledger>> Ledger::open(const std::filesystem::path& journal, int64_t epoch,
                                             BlobStore& store, const Clock& clock) {
  std::unique_ptr<Ledger> ledger(new Ledger(journal, epoch, store, clock));
  FIXIT_ASSIGN_OR_RETURN(ledger->writer_, JournalWriter::open(journal, epoch));
  FIXIT_RETURN_IF_ERROR(read_journal(journal, [&](const JournalRecord& record) {
    ledger->apply(record);
    return true;
  }));
  return ledger;
}

Status Ledger::write(std::vector<JournalRecord> records) {
  std::function<void()> on_change;
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      return Status(ErrorCode::kCancelled, "the journal is closed: this coordinator no longer leads");
    for (JournalRecord& record : records) record.written_ms = clock_.unix_ms();
    const Status status = write_locked(records);
    if (!status.ok()) {
      writer_.reset();
      if (fault_.empty())
        spdlog::error("journal: {}; claims stop until it can be written", status.to_string());
      fault_ = status.to_string();
      return status;
    }
    if (!fault_.empty()) spdlog::info("journal: can be written again");
    fault_.clear();
    for (const JournalRecord& record : records) apply(record);
    on_change = on_change_;
  }
  if (on_change) on_change();
  return {};
}

Status Ledger::write_locked(const std::vector<JournalRecord>& records) {
  FIXIT_RETURN_IF_ERROR(store_.sync().with_context("store"));
  if (!writer_) {
    FIXIT_ASSIGN_OR_RETURN(writer_, JournalWriter::open(journal_, epoch_));
  }
  for (const JournalRecord& record : records) FIXIT_RETURN_IF_ERROR(writer_->append(record));
  return writer_->sync();
}

void Ledger::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

std::string Ledger::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Ledger::on_change(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(callback);
}

void Ledger::apply(const JournalRecord& record) {
  if (!record.position.empty()) {
    std::string& last = positions_[record.lane];
    if (!position_after(record.position, last)) return;
    last = record.position;
  }
  Book& book = books_[record.sweep];
  ++book.version;
  switch (record.kind) {
    case JournalKind::kSweep:
      if (auto frozen = decode<FrozenSweep>(record.data); frozen.ok() && !book.frozen) {
        book.planned = static_cast<int64_t>(plan_jobs(*frozen).size());
        book.frozen = std::make_shared<const FrozenSweep>(std::move(*frozen));
      }
      return;
    case JournalKind::kTurn:
      return apply_turn(book, record);
    case JournalKind::kRationale:
      return apply_rationale(book, record);
    case JournalKind::kJobEnd:
      return apply_end(book, record);
    case JournalKind::kPlan:
      if (auto plan = decode<PlanRecord>(record.data); plan.ok()) book.plans.emplace(plan->phase, *plan);
      return;
    case JournalKind::kDataset:
      if (auto dataset = decode<DatasetRecord>(record.data); dataset.ok()) book.dataset = *dataset;
      return;
  }
}

void Ledger::apply_turn(Book& book, const JournalRecord& record) {
  const auto turn = decode<TurnRecord>(record.data);
  if (!turn.ok() || book.ended.contains(turn->axes.job)) return;
  int& next = book.next_turn[turn->axes.job];
  if (turn->turn < next) return;
  if (consumes_turn(turn->status)) next = turn->turn + 1;
  ++book.turns_by_status[std::string(name_of(turn->status))];
  book.tokens += turn->usage.prompt + turn->usage.completion;
  book.usd += turn->cost_usd;
  if (turn->axes.kind == JobKind::kEvaluate) book.evaluations[turn->axes.job].turn = record.data;
}

void Ledger::apply_rationale(Book& book, const JournalRecord& record) {
  const auto rationale = decode<RationaleRecord>(record.data);
  if (!rationale.ok() || book.ended.contains(rationale->axes.job)) return;
  int& next = book.next_turn[rationale->axes.job];
  if (rationale->attempt < next) return;
  next = rationale->attempt + 1;
  book.tokens += rationale->usage.prompt + rationale->usage.completion;
  book.usd += rationale->cost_usd;
}

void Ledger::apply_end(Book& book, const JournalRecord& record) {
  const auto end = decode<JobEndRecord>(record.data);
  if (!end.ok() || !book.ended.insert(end->axes.job).second) return;
  ++book.ended_by_kind[end->axes.kind];
  book.next_turn.erase(end->axes.job);
  if (end->axes.kind == JobKind::kEvaluate) book.evaluations[end->axes.job].end = record.data;
}

const Ledger::Book* Ledger::find(const std::string& sweep) const {
  const auto found = books_.find(sweep);
  return found == books_.end() || !found->second.frozen ? nullptr : &found->second;
}

SweepPhase Ledger::phase_of(const Book& book) {
  if (first_stage_ended(book.ended_by_kind) < book.planned) return SweepPhase::kRollout;
  if (!book.frozen->recipe) return SweepPhase::kDone;
  if (book.dataset) return book.dataset->error.empty() ? SweepPhase::kDone : SweepPhase::kFailed;
  const auto is_open = [&](const char* phase, JobKind kind) {
    const auto plan = book.plans.find(phase);
    return plan == book.plans.end() ||
           count_of(book.ended_by_kind, kind) < static_cast<int64_t>(plan->second.jobs.size());
  };
  if (is_open("repair", JobKind::kRepair)) return SweepPhase::kRepair;
  if (is_open("rationale", JobKind::kRationale)) return SweepPhase::kRationale;
  return SweepPhase::kBuild;
}

std::string Ledger::position(const std::string& lane) const {
  const std::lock_guard lock(mutex_);
  const auto found = positions_.find(lane);
  return found == positions_.end() ? std::string() : found->second;
}

std::shared_ptr<const FrozenSweep> Ledger::sweep(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(name);
  return book ? book->frozen : nullptr;
}

std::vector<std::string> Ledger::sweeps() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, book] : books_)
    if (book.frozen) names.push_back(name);
  return names;
}

bool Ledger::ended(const std::string& sweep, const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(sweep);
  return book && book->ended.contains(job);
}

SweepPhase Ledger::phase(const std::string& sweep) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(sweep);
  return book ? phase_of(*book) : SweepPhase::kFailed;
}

std::optional<PlanRecord> Ledger::plan(const std::string& sweep, const std::string& phase) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(sweep);
  if (!book) return std::nullopt;
  const auto found = book->plans.find(phase);
  return found == book->plans.end() ? std::nullopt : std::optional(found->second);
}

SweepState Ledger::state(const std::string& sweep) const {
  const std::lock_guard lock(mutex_);
  SweepState state;
  state.name = sweep;
  state.updated_ms = clock_.unix_ms();
  const Book* book = find(sweep);
  if (!book) return state;
  const SweepPhase phase = phase_of(*book);
  state.phase = name_of(phase);
  state.planned = state.phase_planned = book->planned;
  state.finished = state.phase_finished = first_stage_ended(book->ended_by_kind);
  if (phase == SweepPhase::kRepair || phase == SweepPhase::kRationale) {
    const auto plan = book->plans.find(state.phase);
    state.phase_planned = plan == book->plans.end() ? 0 : static_cast<int64_t>(plan->second.jobs.size());
    state.phase_finished =
        count_of(book->ended_by_kind, phase == SweepPhase::kRepair ? JobKind::kRepair : JobKind::kRationale);
  }
  state.turns_by_status = book->turns_by_status;
  state.error = book->dataset && !book->dataset->error.empty() ? book->dataset->error : book->trouble;
  state.tokens = book->tokens;
  state.usd = book->usd;
  return state;
}

int64_t Ledger::version(const std::string& sweep) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(sweep);
  return book ? book->version : 0;
}

void Ledger::set_trouble(const std::string& sweep, const std::string& trouble) {
  const std::lock_guard lock(mutex_);
  const auto found = books_.find(sweep);
  if (found == books_.end() || found->second.trouble == trouble) return;
  found->second.trouble = trouble;
  ++found->second.version;
}

std::optional<JobResult> Ledger::evaluation(const std::string& sweep, const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const Book* book = find(sweep);
  if (!book) return std::nullopt;
  const auto found = book->evaluations.find(job);
  if (found == book->evaluations.end() || found->second.end.empty()) return std::nullopt;
  return found->second;
}

}  // namespace fixit

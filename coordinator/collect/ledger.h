// The journal's writer, and what the journal says kept in memory: which jobs ended, where each lane's events
// were read to, how far each sweep is. Everything here can be had again by reading the journal.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coordinator/journal/journal.h"
#include "core/base/clock.h"
#include "core/queue/registry.h"
#include "core/record/event.h"
#include "core/record/frozen_sweep.h"
#include "core/store/store.h"
#include "core/wire/message.h"

namespace fixit {

enum class SweepPhase { kRollout, kRepair, kRationale, kBuild, kDone, kFailed };

template <>
struct EnumNames<SweepPhase> {
  static constexpr std::pair<SweepPhase, std::string_view> values[] = {
      {SweepPhase::kRollout, "rollout"},     {SweepPhase::kRepair, "repair"},
      {SweepPhase::kRationale, "rationale"}, {SweepPhase::kBuild, "build"},
      {SweepPhase::kDone, "done"},           {SweepPhase::kFailed, "failed"},
  };
};

// True if stream position `a` ("milliseconds-sequence") comes after `b`; an empty one comes before all.
bool position_after(std::string_view a, std::string_view b);

// Thread-safe.
class Ledger {
 public:
  // Opens the journal for writing under `epoch` and reads all of it. kConflict while another process writes
  // it. `store` holds the blobs that records name.
  static Result<std::unique_ptr<Ledger>> open(const std::filesystem::path& journal, int64_t epoch,
                                              BlobStore& store, const Clock& clock);

  // Makes the blobs that the records name durable, appends the records, makes them durable with one fsync,
  // and only then takes them into account. Stamps written_ms. On an error nothing is taken into account and
  // the records should be written again: those that reached the disk all the same are duplicates, which every
  // reader skips. kCancelled after close().
  Status write(std::vector<JournalRecord> records);
  // No write succeeds any more: the lead is lost.
  void close();
  // Why the last write failed; empty if it did not.
  std::string fault() const;
  // Called after each write, on the writing thread, outside any lock.
  void on_change(std::function<void()> callback);

  std::string position(const std::string& lane) const;  // of its last journaled event; empty: none
  std::shared_ptr<const FrozenSweep> sweep(const std::string& name) const;  // null if unknown
  std::vector<std::string> sweeps() const;
  bool ended(const std::string& sweep, const std::string& job) const;
  // Held from the look at ended() to the end of the enqueue, and while Redis forgets ended jobs: a job whose
  // record went in between would be enqueued, and paid for, a second time.
  std::unique_lock<std::mutex> hold_job_records() { return std::unique_lock(job_records_); }
  SweepPhase phase(const std::string& sweep) const;  // REQUIRES: the sweep is known
  // Jobs planned for a phase of the chain, or nothing while that is undecided.
  std::optional<PlanRecord> plan(const std::string& sweep, const std::string& phase) const;
  // For status; `updated_ms` is the time of the call.
  SweepState state(const std::string& sweep) const;
  // Grows with each change of the sweep's state.
  int64_t version(const std::string& sweep) const;
  // A fault that keeps the sweep's chain from going on, shown in its state; empty: none.
  void set_trouble(const std::string& sweep, const std::string& trouble);
  // The result of an ended evaluate job.
  std::optional<JobResult> evaluation(const std::string& sweep, const std::string& job) const;

 private:
  struct Book {  // one sweep
    std::shared_ptr<const FrozenSweep> frozen;
    int64_t planned = 0;
    std::unordered_set<std::string> ended;
    std::map<JobKind, int64_t> ended_by_kind;
    std::unordered_map<std::string, int>
        next_turn;  // of jobs that have not ended: later copies are duplicates
    std::map<std::string, int64_t> turns_by_status;
    std::map<std::string, PlanRecord> plans;
    std::optional<DatasetRecord> dataset;
    std::map<std::string, JobResult> evaluations;
    int64_t tokens = 0;
    double usd = 0;
    std::string trouble;
    int64_t version = 0;
  };

  Ledger(std::filesystem::path journal, int64_t epoch, BlobStore& store, const Clock& clock);
  Status write_locked(const std::vector<JournalRecord>& records);
  void apply(const JournalRecord& record);
  void apply_turn(Book& book, const JournalRecord& record);
  void apply_rationale(Book& book, const JournalRecord& record);
  void apply_end(Book& book, const JournalRecord& record);
  const Book* find(const std::string& sweep) const;
  static SweepPhase phase_of(const Book& book);

  const std::filesystem::path journal_;
  const int64_t epoch_;
  BlobStore& store_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::mutex job_records_;
  std::unique_ptr<JournalWriter> writer_;  // null after a failed write: opened anew by the next
  bool closed_ = false;
  std::string fault_;
  std::function<void()> on_change_;
  std::map<std::string, std::string> positions_;
  std::map<std::string, Book> books_;
};

}  // namespace fixit

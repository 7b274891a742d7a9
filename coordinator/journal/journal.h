// The journal: what was decided and what came of it, append-only on disk (docs/journal-format.md). Redis can
// be rebuilt from it; datasets and tables are functions of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/record/event.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

enum class JournalKind { kSweep, kTurn, kRationale, kJobEnd, kPlan, kDataset };

template <>
struct EnumNames<JournalKind> {
  static constexpr std::pair<JournalKind, std::string_view> values[] = {
      {JournalKind::kSweep, "sweep"},    {JournalKind::kTurn, "turn"}, {JournalKind::kRationale, "rationale"},
      {JournalKind::kJobEnd, "job_end"}, {JournalKind::kPlan, "plan"}, {JournalKind::kDataset, "dataset"},
  };
};

struct JournalRecord {
  JournalKind kind = JournalKind::kTurn;
  std::string sweep;
  std::string
      data;  // msgpack of FrozenSweep, TurnRecord, RationaleRecord, JobEndRecord, PlanRecord, DatasetRecord
  std::string lane;  // turn, rationale, job_end: the lane whose event log it came from,
  std::string
      position;  // and its position there; a record at or before a lane's last position is a duplicate
  int64_t written_ms = 0;
  FIXIT_FIELDS(kind, sweep, data, lane, position, written_ms);
};

// Jobs that a phase of a sweep's chain consists of ("repair", "rationale"), decided once from the journal.
struct PlanRecord {
  std::string phase;
  std::vector<std::string> jobs;
  FIXIT_FIELDS(phase, jobs);
};

// A dataset that was built, or why it could not be.
struct DatasetRecord {
  std::string recipe;
  std::string folder;
  int64_t failures = 0;  // after filters and balance
  int64_t repairs = 0;   // kept
  int64_t rationales = 0;
  int64_t rows = 0;
  std::string rows_sha256;
  std::string error;
  FIXIT_FIELDS(recipe, folder, failures, repairs, rationales, rows, rows_sha256, error);
};

// One writer per folder (kConflict otherwise). Segments named by the leader's epoch. Not thread-safe.
class JournalWriter {
 public:
  static Result<std::unique_ptr<JournalWriter>> open(const std::filesystem::path& folder, int64_t epoch);
  virtual ~JournalWriter() = default;
  virtual Status append(const JournalRecord& record) = 0;
  virtual Status sync() = 0;  // fsync; append() alone is not durable
};

// Reads all records in order of writing, also while a writer appends. A torn tail ends a segment, with a
// warning in the log; damage elsewhere is kCorrupt with segment and offset. `visit` returns false to stop.
Status read_journal(const std::filesystem::path& folder,
                    const std::function<bool(const JournalRecord&)>& visit);

}  // namespace fixit

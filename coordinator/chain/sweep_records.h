// What the journal knows of one sweep, as its chain needs it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/journal/journal.h"
#include "core/base/status.h"
#include "core/record/event.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

// One record per (job, turn) and per (job, attempt): where Redis lost its newest second a turn can have been
// recorded twice, and the first record is the one that counts, here and in the ledger.
struct SweepRecords {
  FrozenSweep sweep;
  std::vector<TurnRecord> turns;  // in the journal's order
  std::vector<RationaleRecord> rationales;
  std::map<std::string, PlanRecord> plans;  // by phase; the first one of a phase counts

  // Adds a record of this sweep; records of other sweeps are passed over. kCorrupt if its data do not decode.
  Status add(const JournalRecord& record, const std::string& name);

  // The turn `number` of `job`, or null.
  const TurnRecord* turn(const std::string& job, int number) const;

 private:
  std::map<std::pair<std::string, int>, size_t> turn_index_;
  std::set<std::pair<std::string, int>> rationale_index_;
  bool has_sweep_ = false;
};

// Reads the journal for one sweep, keeping of its turns only what a chain can use: failed rollout turns and
// CORRECT repair turns. kNotFound if the journal does not know the sweep.
Result<SweepRecords> read_sweep_records(const std::filesystem::path& journal, const std::string& name);

}  // namespace fixit

// Dataset rows: a pure function of the journal, the recipe and the store.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/chain/sweep_records.h"
#include "core/base/status.h"
#include "core/store/store.h"

namespace fixit {

struct BuiltRows {
  std::string jsonl;       // one row a line, sorted by id
  int64_t failures = 0;    // mined
  int64_t repairs = 0;     // verified and kept
  int64_t rationales = 0;  // accepted
  int64_t rows = 0;        // after exact duplicates were dropped
};

// A row is {id, messages, metadata}: five messages [{role, content, step_loss_mask}] (system, task, the
// failed reply, its feedback, rationale and repaired kernel), of which only the last is trained on. `id` is a
// hash of the messages, so equal rows share one. Holds no time and no host: byte-identical when repeated.
// kNotFound or kCorrupt if the store lacks a blob that a row needs. REQUIRES: records.sweep.recipe.
Result<BuiltRows> build_rows(const SweepRecords& records, BlobStore& store);

}  // namespace fixit

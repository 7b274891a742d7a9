// A typed outcome as text for the model: one template per status.
#pragma once

#include <string>

#include "core/record/job.h"
#include "core/record/verdict.h"

namespace fixit {

struct FeedbackFacts {
  TurnStatus status = TurnStatus::kPending;
  std::string reason;  // NO_CODE, TRUNCATED: what was missing
  const CompileRecord* compile = nullptr;
  std::string compile_log;  // whole; the text takes a bounded head and tail, errors first
  const Verdict* verdict = nullptr;
  double target_speedup = 0;
};

// REQUIRES: consumes_turn(facts.status). At most 16 KiB.
std::string feedback_text(const FeedbackFacts& facts);

// The part of a compiler's output a model should see: lines with errors and their context first, then head
// and tail, at most `limit` bytes, saying how much is left out.
std::string excerpt_compile_log(const std::string& log, size_t limit);

}  // namespace fixit

// The closed set of outcomes of a turn. Made where the fact is known, never parsed out of text.
#pragma once

#include "core/base/enum_names.h"

namespace fixit {

enum class TurnStatus {
  kPending,  // not judged yet; never in a finished record
  kCorrect,
  kIncorrectNumerical,
  kIncorrectShape,
  kIncorrectDtype,
  kNoCode,     // the reply holds no complete fenced block with the entry point
  kTruncated,  // the reply was cut by the token limit
  kBanned,     // forbidden header, library, symbol or mechanism
  kCompileError,
  kRuntimeError,  // fault, out of bounds write, exit
  kKernelTimeout,
  kUnsupported,  // something that the recorder cannot carry, by name
  kRejected,     // caught cheating: which check, with evidence
  kInfra,        // ours or the site's fault: consumes no turn, never shown to a model
  kLlmTransient,
  kLlmFatal,
  kContextExhausted,
  kBudget,
  kCancelled,
};

template <>
struct EnumNames<TurnStatus> {
  static constexpr std::pair<TurnStatus, std::string_view> values[] = {
      {TurnStatus::kPending, "PENDING"},
      {TurnStatus::kCorrect, "CORRECT"},
      {TurnStatus::kIncorrectNumerical, "INCORRECT_NUMERICAL"},
      {TurnStatus::kIncorrectShape, "INCORRECT_SHAPE"},
      {TurnStatus::kIncorrectDtype, "INCORRECT_DTYPE"},
      {TurnStatus::kNoCode, "NO_CODE"},
      {TurnStatus::kTruncated, "TRUNCATED"},
      {TurnStatus::kBanned, "BANNED"},
      {TurnStatus::kCompileError, "COMPILE_ERROR"},
      {TurnStatus::kRuntimeError, "RUNTIME_ERROR"},
      {TurnStatus::kKernelTimeout, "KERNEL_TIMEOUT"},
      {TurnStatus::kUnsupported, "UNSUPPORTED"},
      {TurnStatus::kRejected, "REJECTED"},
      {TurnStatus::kInfra, "INFRA"},
      {TurnStatus::kLlmTransient, "LLM_TRANSIENT"},
      {TurnStatus::kLlmFatal, "LLM_FATAL"},
      {TurnStatus::kContextExhausted, "CONTEXT_EXHAUSTED"},
      {TurnStatus::kBudget, "BUDGET"},
      {TurnStatus::kCancelled, "CANCELLED"},
  };
};

// True for the statuses that are the model's doing (CORRECT ... REJECTED).
bool consumes_turn(TurnStatus status);
// True for failures that a repair teacher can be asked to mend: consumed turns that are not CORRECT.
bool is_failure(TurnStatus status);

enum class InstructionVerdict { kUnknown, kYes, kNo, kToken };

template <>
struct EnumNames<InstructionVerdict> {
  static constexpr std::pair<InstructionVerdict, std::string_view> values[] = {
      {InstructionVerdict::kUnknown, "unknown"},
      {InstructionVerdict::kYes, "yes"},
      {InstructionVerdict::kNo, "no"},
      {InstructionVerdict::kToken, "token"},
  };
};

}  // namespace fixit

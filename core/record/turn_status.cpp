#include "core/record/turn_status.h"

namespace fixit {

bool consumes_turn(TurnStatus status) {
  switch (status) {
    case TurnStatus::kCorrect:
    case TurnStatus::kIncorrectNumerical:
    case TurnStatus::kIncorrectShape:
    case TurnStatus::kIncorrectDtype:
    case TurnStatus::kNoCode:
    case TurnStatus::kTruncated:
    case TurnStatus::kBanned:
    case TurnStatus::kCompileError:
    case TurnStatus::kRuntimeError:
    case TurnStatus::kKernelTimeout:
    case TurnStatus::kUnsupported:
    case TurnStatus::kRejected:
      return true;
    case TurnStatus::kPending:
    case TurnStatus::kInfra:
    case TurnStatus::kLlmTransient:
    case TurnStatus::kLlmFatal:
    case TurnStatus::kContextExhausted:
    case TurnStatus::kBudget:
    case TurnStatus::kCancelled:
      return false;
  }
  return false;
}

bool is_failure(TurnStatus status) {
  return consumes_turn(status) && status != TurnStatus::kCorrect;
}

}  // namespace fixit

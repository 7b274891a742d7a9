#include "worker/feedback/feedback.h"

#include <fmt/format.h>

#include "worker/feedback/measurement_text.h"
#include "worker/feedback/text.h"

namespace fixit {
namespace {

constexpr size_t kLimit = 16 * 1024;
constexpr size_t kLogLimit = 12 * 1024;
constexpr size_t kEvidence = 2048;
constexpr std::string_view kAgain =
    "Answer with the whole mended kernel in one fenced code block tagged cpp.";

const Verdict& verdict_of(const FeedbackFacts& facts) {
  static const Verdict kNone;
  return facts.verdict != nullptr ? *facts.verdict : kNone;
}

// "check: evidence" of the compiler's checks where they decided, else of the verdict.
std::string check_text(const FeedbackFacts& facts) {
  const bool compiled = facts.compile != nullptr && !facts.compile->check.empty();
  const std::string& check = compiled ? facts.compile->check : verdict_of(facts).check;
  const std::string& evidence = compiled ? facts.compile->evidence : verdict_of(facts).evidence;
  std::string text;
  if (!check.empty()) text += "Check: " + clip(check, kEvidence) + "\n";
  if (!evidence.empty()) text += "Found: " + clip(evidence, kEvidence) + "\n";
  return text;
}

std::string fault_text(const Verdict& verdict) {
  if (!verdict.fault) return "";
  std::string text;
  if (!verdict.fault->kind.empty()) text += "Fault: " + clip(verdict.fault->kind, kEvidence) + "\n";
  if (!verdict.fault->where.empty()) text += "Where: " + clip(verdict.fault->where, kEvidence) + "\n";
  if (!verdict.fault->detail.empty()) text += "Detail: " + clip(verdict.fault->detail, kEvidence) + "\n";
  return text;
}

std::string no_code(const FeedbackFacts& facts) {
  return fmt::format(
      "NO_CODE: no kernel was found in your reply{}.\nPut the whole kernel into one fenced code block that "
      "begins with "
      "```cpp and ends with ```; if the code itself holds three backticks, use a longer fence.",
      facts.reason.empty() ? "" : ": " + clip(facts.reason, kEvidence));
}

std::string truncated(const FeedbackFacts& facts) {
  return fmt::format(
      "TRUNCATED: your reply reached the token limit before the kernel was complete{}.\nThink and explain "
      "less, and give "
      "the whole kernel in one fenced code block tagged cpp.",
      facts.reason.empty() ? "" : " (" + clip(facts.reason, kEvidence) + ")");
}

std::string compile_error(const FeedbackFacts& facts) {
  const std::string excerpt = excerpt_compile_log(facts.compile_log, kLogLimit);
  return fmt::format("COMPILE_ERROR: the kernel does not compile.\n{}{}{}\n{}", check_text(facts),
                     excerpt.empty() ? "The compiler gave no output." : "Compiler output:\n", excerpt,
                     kAgain);
}

std::string numerical(const FeedbackFacts& facts) {
  const Verdict& verdict = verdict_of(facts);
  return fmt::format(
      "INCORRECT_NUMERICAL: the kernel runs, but its results are wrong.\nAn element matches where |got - "
      "expected| <= {0:g} "
      "+ {0:g} * |expected|.\n{1}Find the cause of the wrong values. {2}",
      verdict.tolerance, mismatch_text(verdict), kAgain);
}

std::string correct(const FeedbackFacts& facts) {
  const Verdict& verdict = verdict_of(facts);
  std::string text = "CORRECT: every result matches.\n" + performance_text(verdict, facts.target_speedup) +
                     instruction_text(verdict.instructions);
  const bool reached = verdict.speedup && *verdict.speedup >= facts.target_speedup;
  if (!reached) text += fmt::format("Keep the results correct and make the kernel faster. {}", kAgain);
  return text;
}

// Statuses that need no figures: a sentence, the facts, and what to do.
std::string told(std::string_view sentence, const std::string& details, std::string_view advice) {
  return fmt::format("{}\n{}{} {}", sentence, details, advice, kAgain);
}

std::string text_for(const FeedbackFacts& facts) {
  const std::string check = check_text(facts);
  const std::string fault = fault_text(verdict_of(facts));
  switch (facts.status) {
    case TurnStatus::kCorrect:
      return correct(facts);
    case TurnStatus::kIncorrectNumerical:
      return numerical(facts);
    case TurnStatus::kIncorrectShape:
      return told("INCORRECT_SHAPE: an output has the wrong shape.", check,
                  "Write every output in the shape that the definition gives.");
    case TurnStatus::kIncorrectDtype:
      return told("INCORRECT_DTYPE: an output has the wrong element type.", check,
                  "Write every output in the element type that the definition gives.");
    case TurnStatus::kNoCode:
      return no_code(facts);
    case TurnStatus::kTruncated:
      return truncated(facts);
    case TurnStatus::kBanned:
      return told("BANNED: the kernel uses something that is forbidden; it was not run.", check,
                  "Write the computation yourself, without it.");
    case TurnStatus::kCompileError:
      return compile_error(facts);
    case TurnStatus::kRuntimeError:
      return told("RUNTIME_ERROR: the kernel failed while it ran.", fault + check,
                  "Check indices, sizes, alignment and the ends of loops.");
    case TurnStatus::kKernelTimeout:
      return told("KERNEL_TIMEOUT: a call did not finish in the time allowed.", fault + check,
                  "Look for loops that never end, waiting that never succeeds, or far too much work.");
    case TurnStatus::kUnsupported:
      return told("UNSUPPORTED: the kernel uses something that cannot be evaluated here.", check + fault,
                  "Do without it.");
    case TurnStatus::kRejected:
      return told("REJECTED: the kernel does not compute its results honestly.", check + fault,
                  "Every call must compute all outputs from its own inputs, and do nothing else.");
    default:
      return "";  // outcomes that consume no turn are never told to a model
  }
}

}  // namespace

std::string feedback_text(const FeedbackFacts& facts) {
  return clip(text_for(facts), kLimit);
}

}  // namespace fixit

#include "worker/feedback/feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fixit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Verdict verdict(TurnStatus status) {
  Verdict verdict;
  verdict.status = status;
  verdict.tolerance = 1e-2;
  return verdict;
}

std::string text_of(const Verdict& verdict, double target = 1.2) {
  FeedbackFacts facts;
  facts.status = verdict.status;
  facts.verdict = &verdict;
  facts.target_speedup = target;
  return feedback_text(facts);
}

Verdict correct(double speedup) {
  Verdict result = verdict(TurnStatus::kCorrect);
  WorkloadVerdict workload;
  workload.axes = {{"K", 64}, {"M", 128}};
  workload.status = TurnStatus::kCorrect;
  workload.latency = LatencySummary{2.0, 1.9, 2.1, 1.8, 50, 0};
  workload.reference_latency = LatencySummary{2.0 * speedup, 0, 0, 0, 50, 0};
  workload.speedup = speedup;
  result.workloads = {workload};
  result.speedup = speedup;
  result.baseline = "OpenBLAS sgemm 0.3.21";
  result.instructions.verdict = InstructionVerdict::kYes;
  result.instructions.family = "fma";
  result.instructions.executed = 4096;
  return result;
}

TEST(Feedback, CorrectTellsLatenciesSpeedupAndDistance) {
  const std::string text = text_of(correct(0.6));
  EXPECT_THAT(text, StartsWith("CORRECT"));
  EXPECT_THAT(text, AllOf(HasSubstr("K=64, M=128"), HasSubstr("2 ms"), HasSubstr("reference 1.2 ms"),
                          HasSubstr("OpenBLAS sgemm"), HasSubstr("Speedup 0.600x, target 1.200x"),
                          HasSubstr("2 times faster"), HasSubstr("(fma): executed, 4096 times")));
  EXPECT_THAT(text_of(correct(1.3)),
              AllOf(HasSubstr("target is reached"), Not(HasSubstr("make the kernel faster"))));
}

TEST(Feedback, TellsHowOftenRequiredInstructionsRan) {
  Verdict low = correct(0.5);
  low.instructions.verdict = InstructionVerdict::kToken;
  low.instructions.capped = true;
  EXPECT_THAT(text_of(low), AllOf(HasSubstr("at least 4096 times"), HasSubstr("token share")));
  low.instructions.verdict = InstructionVerdict::kNo;
  low.instructions.static_sites = 3;
  EXPECT_THAT(text_of(low), AllOf(HasSubstr("not executed"), HasSubstr("holds 3")));
  low.instructions.verdict = InstructionVerdict::kUnknown;
  EXPECT_THAT(text_of(low), Not(HasSubstr("instructions")));
}

TEST(Feedback, NumericalTellsRatioErrorsAndPlaces) {
  Verdict wrong = verdict(TurnStatus::kIncorrectNumerical);
  WorkloadVerdict workload;
  workload.axes = {{"M", 7}};
  workload.status = TurnStatus::kIncorrectNumerical;
  OutputComparison output;
  output.name = "C";
  output.elements = 400;
  output.mismatched = 100;
  output.matched_ratio = 0.75;
  output.max_abs_error = 3.5;
  output.max_rel_error = INFINITY;
  output.first_mismatches = {{{1, 2}, NAN, 4.25}};
  workload.outputs = {output};
  WorkloadVerdict fine;
  fine.status = TurnStatus::kCorrect;
  wrong.workloads = {workload, fine};
  EXPECT_THAT(text_of(wrong),
              AllOf(StartsWith("INCORRECT_NUMERICAL"), HasSubstr("0.01 + 0.01 *"), HasSubstr("With M=7"),
                    HasSubstr("75.0000 % of 400"), HasSubstr("100 do not"), HasSubstr("error 3.5"),
                    HasSubstr("Infinity"), HasSubstr("C[1, 2]: got NaN, expected 4.25"),
                    HasSubstr("1 of 2 workloads")));
}

TEST(Feedback, FaultsChecksAndEvidenceAreTold) {
  Verdict fault = verdict(TurnStatus::kRuntimeError);
  fault.fault = Fault{"segmentation fault", "run+0x40", "address 0x10"};
  EXPECT_THAT(text_of(fault), AllOf(StartsWith("RUNTIME_ERROR"), HasSubstr("segmentation fault"),
                                    HasSubstr("run+0x40"), HasSubstr("address 0x10")));
  fault.status = TurnStatus::kKernelTimeout;
  fault.fault->kind = "hang";
  EXPECT_THAT(text_of(fault), AllOf(StartsWith("KERNEL_TIMEOUT"), HasSubstr("hang")));
  for (const TurnStatus status : {TurnStatus::kBanned, TurnStatus::kRejected, TurnStatus::kUnsupported,
                                  TurnStatus::kIncorrectShape, TurnStatus::kIncorrectDtype}) {
    Verdict caught = verdict(status);
    caught.check = "imported symbol";
    caught.evidence = "dlopen";
    EXPECT_THAT(text_of(caught), AllOf(StartsWith(std::string(name_of(status))), HasSubstr("imported symbol"),
                                       HasSubstr("dlopen")));
  }
}

TEST(Feedback, BannedByTheCompilersChecksIsToldFromThere) {
  CompileRecord compile;
  compile.check = "include";
  compile.evidence = "cblas.h";
  FeedbackFacts facts;
  facts.status = TurnStatus::kBanned;
  facts.compile = &compile;
  EXPECT_THAT(feedback_text(facts), AllOf(HasSubstr("Check: include"), HasSubstr("Found: cblas.h")));
}

TEST(Feedback, NoCodeAndTruncatedAreToldApart) {
  FeedbackFacts facts;
  facts.status = TurnStatus::kNoCode;
  facts.reason = "the last code block is never closed";
  EXPECT_THAT(feedback_text(facts),
              AllOf(StartsWith("NO_CODE"), HasSubstr("never closed"), HasSubstr("```cpp")));
  facts.status = TurnStatus::kTruncated;
  facts.reason = "";
  EXPECT_THAT(feedback_text(facts), AllOf(StartsWith("TRUNCATED"), HasSubstr("token limit")));
}

TEST(Feedback, EveryConsumedStatusHasBoundedTextAndNoOtherHasAny) {
  Verdict big = correct(0.5);
  big.check = big.evidence = std::string(100000, 'x');
  big.fault = Fault{std::string(100000, 'k'), std::string(100000, 'w'), std::string(100000, 'd')};
  big.workloads.assign(500, big.workloads[0]);
  for (WorkloadVerdict& workload : big.workloads) {
    workload.axes[std::string(5000, 'a')] = 1;
    workload.status = TurnStatus::kIncorrectNumerical;
    OutputComparison output;
    output.name = std::string(5000, 'n');
    output.mismatched = 1;
    output.first_mismatches.assign(5, {{1}, 0, 1});
    workload.outputs.assign(20, output);
  }
  CompileRecord compile;
  FeedbackFacts facts;
  facts.verdict = &big;
  facts.compile = &compile;
  facts.compile_log = std::string(1 << 20, 'e');
  facts.reason = std::string(100000, 'r');
  for (const auto& [status, name] : EnumNames<TurnStatus>::values) {
    SCOPED_TRACE(name);
    facts.status = status;
    const std::string text = feedback_text(facts);
    EXPECT_LE(text.size(), 16u * 1024);
    EXPECT_EQ(text.empty(), !consumes_turn(status));
  }
}

TEST(CompileLog, ShortLogsAreWhole) {
  EXPECT_EQ(excerpt_compile_log("a\nb\n", 100), "a\nb\n");
}

TEST(CompileLog, ErrorsComeFirstAndWhatIsLeftOutIsCounted) {
  std::string log = "FIRST LINE\n";
  for (int i = 0; i < 3000; ++i) log += "kernel.cpp:1:1: warning: noise\n";
  log +=
      "kernel.cpp: In function 'void run()':\nkernel.cpp:9:3: error: 'x' was not declared\n    9 |   x = "
      "1;\n      |   ^\n";
  for (int i = 0; i < 3000; ++i) log += "kernel.cpp:1:1: warning: noise\n";
  log += "LAST LINE\n";
  const std::string text = excerpt_compile_log(log, 4096);
  EXPECT_LE(text.size(), 4096u);
  EXPECT_THAT(text,
              AllOf(StartsWith("Errors"), HasSubstr("In function 'void run()'"), HasSubstr("9 |   x = 1;"),
                    HasSubstr("FIRST LINE"), HasSubstr("LAST LINE"), HasSubstr("are left out")));
  EXPECT_LT(text.find("'x' was not declared"), text.find("FIRST LINE"));
}

TEST(CompileLog, AnyLimitHolds) {
  std::string log;
  for (int i = 0; i < 500; ++i)
    log += "a.cpp:1:1: error: \xe2\x80\x98" + std::string(i * 7, 'T') + "\xe2\x80\x99\n";
  for (const size_t limit : {0u, 1u, 5u, 100u, 511u, 512u, 513u, 600u, 4096u, 20000u})
    EXPECT_LE(excerpt_compile_log(log, limit).size(), limit);
}

TEST(CompileLog, CutsBetweenCharacters) {
  std::string log;
  for (int i = 0; i < 5000; ++i) log += "\xe2\x80\x98";
  const std::string text = excerpt_compile_log(log, 1001);
  size_t marks = 0;
  for (size_t at = text.find("\xe2\x80\x98"); at != std::string::npos; at = text.find("\xe2\x80\x98", at + 3))
    ++marks;
  size_t high = 0;
  for (const char c : text) high += static_cast<unsigned char>(c) >= 0x80;
  EXPECT_EQ(high, 3 * marks);
  EXPECT_GT(marks, 0u);
}

}  // namespace
}  // namespace fixit

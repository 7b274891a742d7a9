// All programs as processes: the demonstration sweep from launch to rows, against what its recorded replies
// must give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/endtoend/demonstration.h"

namespace fixit::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kGemm = "gemm_f32_n512_k512", kAttention = "attention_f32_d64",
                  kCausal = "attention_f32_d64_causal", kNorm = "rmsnorm_f32_n4096";

// What each recorded reply was written to get.
Demonstration::Turns expected_rollouts() {
  const std::map<std::string, std::vector<std::vector<std::string>>> by_problem = {
      {kGemm,
       {{"COMPILE_ERROR", "CORRECT", "NO_CODE", "CORRECT"},
        {"INCORRECT_NUMERICAL", "RUNTIME_ERROR", "TRUNCATED", "CORRECT"}}},
      {kAttention,
       {{"RUNTIME_ERROR", "INCORRECT_NUMERICAL", "CORRECT", "CORRECT"},
        {"KERNEL_TIMEOUT", "INCORRECT_NUMERICAL", "BANNED", "CORRECT"}}},
      {kCausal,
       {{"INCORRECT_NUMERICAL", "CORRECT", "REJECTED", "CORRECT"},
        {"COMPILE_ERROR", "RUNTIME_ERROR", "INCORRECT_NUMERICAL", "CORRECT"}}},
      {kNorm,
       {{"COMPILE_ERROR", "INCORRECT_NUMERICAL", "CORRECT", "CORRECT"},
        {"INCORRECT_NUMERICAL", "RUNTIME_ERROR", "CORRECT", "CORRECT"}}},
  };
  Demonstration::Turns turns;
  for (const auto& [problem, samples] : by_problem)
    for (size_t sample = 0; sample < samples.size(); ++sample)
      for (size_t turn = 0; turn < samples[sample].size(); ++turn)
        turns[{problem, static_cast<int>(sample), static_cast<int>(turn), 0}] = samples[sample][turn];
  return turns;
}

// The three balanced failures of each problem (recipes/quickstart.yaml), and each repair's turns. Where two
// failures share a stratum, the job's id decides, which is fixed by the sweep's names.
void expect_repairs(const Demonstration::Turns& repairs) {
  std::map<std::string, int> failures;
  for (const auto& [key, status] : repairs)
    if (std::get<3>(key) == 0) ++failures[std::get<0>(key)];
  EXPECT_EQ(failures, (std::map<std::string, int>{{kGemm, 3}, {kAttention, 3}, {kCausal, 3}, {kNorm, 3}}));
  const auto status = [&](int sample, int failed_turn, int turn) {
    const auto found = repairs.find({kGemm, sample, failed_turn, turn});
    return found == repairs.end() ? "none" : found->second;
  };
  EXPECT_EQ(status(0, 0, 0), "CORRECT");
  EXPECT_EQ(status(1, 0, 0), "RUNTIME_ERROR");
  EXPECT_EQ(status(1, 0, 1), "COMPILE_ERROR");
  EXPECT_EQ(status(1, 1, 0), "RUNTIME_ERROR");
  EXPECT_EQ(status(1, 1, 1), "CORRECT");
}

// The last line that holds `part`.
std::string line_of(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) found = line;
  return found;
}

class QuickstartTest : public ::testing::Test {
 protected:
  Demonstration demonstration_;
  std::vector<std::string> launch_words() const {
    return {"launch", demonstration_.sweep().string(), "--local", "--wait", "--redis", "embedded",
            "--data", demonstration_.data().string()};
  }
};

TEST_F(QuickstartTest, EveryReplyGetsWhatItWasWrittenForAndASecondRunChangesNothing) {
  const auto first = demonstration_.fixit(launch_words());
  ASSERT_EQ(first.ending, "exit code 0") << first.output;
  EXPECT_EQ(demonstration_.turns(JobKind::kRollout), expected_rollouts());
  expect_repairs(demonstration_.turns(JobKind::kRepair));
  EXPECT_THAT(demonstration_.duplicates(), IsEmpty());
  EXPECT_THAT(first.output,
              HasSubstr("12 failures -> 12 repair jobs, 11 repairs kept -> 10 rationales -> 10 rows"));
  const auto rows = demonstration_.rows_without_measurements();
  EXPECT_EQ(rows.size(), 10u);
  for (const std::string& row : rows) EXPECT_THAT(row, HasSubstr("<think>"));
  // gemm's kernels are written with FMA intrinsics or contracted to FMA: the table says that they executed.
  EXPECT_THAT(line_of(first.output, kGemm + " "), HasSubstr("  yes "));

  std::ifstream before_file(demonstration_.rows());
  const std::string before(std::istreambuf_iterator<char>(before_file), {});
  const auto written = std::filesystem::last_write_time(demonstration_.rows());
  const int64_t tokens = demonstration_.tokens();
  const auto second = demonstration_.fixit(launch_words());
  ASSERT_EQ(second.ending, "exit code 0") << second.output;
  EXPECT_THAT(second.output, HasSubstr("8 jobs, 0 new, 8 known before"));
  std::ifstream after_file(demonstration_.rows());
  EXPECT_EQ(before, std::string(std::istreambuf_iterator<char>(after_file), {}));
  EXPECT_EQ(written, std::filesystem::last_write_time(demonstration_.rows()));
  EXPECT_EQ(tokens, demonstration_.tokens());
  EXPECT_THAT(demonstration_.duplicates(), IsEmpty());
}

}  // namespace
}  // namespace fixit::testing

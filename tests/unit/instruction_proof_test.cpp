#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/target/cpu/instruction_proof.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;

std::vector<CodeSite> sites(int count, int flops = 16) {
  std::vector<CodeSite> result;
  for (int i = 0; i < count; ++i)
    result.push_back({static_cast<uint64_t>(64 * i), "run", "vfmadd231ps", flops});
  return result;
}

TEST(InstructionProof, SaysNoWhereNothingIsThereOrNothingRan) {
  const InstructionProof none = judge_counts("fma", {}, {}, false, 1000);
  EXPECT_EQ(none.verdict, InstructionVerdict::kNo);
  EXPECT_THAT(none.reason, HasSubstr("has no fma"));
  const InstructionProof idle = judge_counts("fma", sites(3), {0, 0, 0}, false, 1000);
  EXPECT_EQ(idle.verdict, InstructionVerdict::kNo);
  EXPECT_EQ(idle.static_sites, 3u);
  EXPECT_THAT(idle.reason, HasSubstr("none of the 3"));
}

TEST(InstructionProof, CallsLessThanHalfOfTheWorkAToken) {
  const InstructionProof half = judge_counts("fma", sites(2), {10, 40}, false, 1600);
  EXPECT_EQ(half.verdict, InstructionVerdict::kYes);
  EXPECT_DOUBLE_EQ(*half.work_fraction, 0.5);
  EXPECT_EQ(half.executed, 50u);
  EXPECT_EQ(half.sites[0].executed, 40u) << "executed ones first";
  const InstructionProof less = judge_counts("fma", sites(2), {10, 39}, false, 1600);
  EXPECT_EQ(less.verdict, InstructionVerdict::kToken);
}

TEST(InstructionProof, GivesNoFractionWhereTheCountOrTheWorkIsUnknown) {
  const InstructionProof capped = judge_counts("fma", sites(1), {100}, true, 1e12);
  EXPECT_EQ(capped.verdict, InstructionVerdict::kYes);
  EXPECT_TRUE(capped.capped);
  EXPECT_FALSE(capped.work_fraction.has_value());
  const InstructionProof unknown_work = judge_counts("fma", sites(1), {1}, false, 0);
  EXPECT_EQ(unknown_work.verdict, InstructionVerdict::kYes);
  EXPECT_FALSE(unknown_work.work_fraction.has_value());
}

TEST(InstructionProof, ShowsAtMostSixteenSites) {
  EXPECT_EQ(judge_counts("fma", sites(40), std::vector<uint64_t>(40, 1), false, 0).sites.size(), 16u);
}

TEST(InstructionProof, IsUnknownWhereTheObjectCannotBeRead) {
  const InstructionProof proof = prove_instructions("not an object", "fma", 1, [](const auto&, uint64_t) {
    return Result<CandidateProcess::TraceCounts>(Status(ErrorCode::kInternal, "not to be called"));
  });
  EXPECT_EQ(proof.verdict, InstructionVerdict::kUnknown);
  EXPECT_FALSE(proof.reason.empty());
  EXPECT_THAT(proof.reason, ::testing::Not(HasSubstr("not to be called")));
}

TEST(InstructionProof, SharesTheCountAmongSites) {
  EXPECT_EQ(cap_per_site(1), kMaxCountedExecutions);
  EXPECT_EQ(cap_per_site(100), kMaxCountedExecutions / 100);
  EXPECT_EQ(cap_per_site(1000000), 4u);
}

}  // namespace
}  // namespace fixit

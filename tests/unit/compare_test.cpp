#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "profiler/compare/compare.h"

namespace fixit {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Result<OutputComparison> compare(const std::vector<float>& got, const std::vector<float>& expected,
                                 std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(expected.size())};
  return compare_output("C", Dtype::kFloat32, shape, std::as_bytes(std::span(got)),
                        std::as_bytes(std::span(expected)), {});
}

TEST(Compare, UsesAbsolutePlusRelativeToleranceOfTheExpectedValue) {
  // 0.01 + 0.01 * 100 = 1.01 around 100; 0.01 around 0.
  const auto result = compare({101.0f, 98.995f, 0.0099f, 101.02f, 0.011f}, {100, 100, 0, 100, 0});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->mismatched, 2);
  ASSERT_EQ(result->first_mismatches.size(), 2u);
  EXPECT_EQ(result->first_mismatches[0].index, std::vector<int64_t>{3});
  EXPECT_FLOAT_EQ(static_cast<float>(result->first_mismatches[0].got), 101.02f);
  EXPECT_EQ(result->first_mismatches[0].expected, 100);
  EXPECT_NEAR(result->matched_ratio, 0.6, 1e-12);
}

TEST(Compare, FailsNanAndMatchesInfinitiesOnlyWithThemselves) {
  const auto equal = compare({kInfinity, -kInfinity, 1}, {kInfinity, -kInfinity, 1});
  ASSERT_TRUE(equal.ok());
  EXPECT_EQ(equal->mismatched, 0);
  EXPECT_EQ(equal->max_abs_error, 0);
  for (const auto& [got, expected] : std::vector<std::pair<float, float>>{
           {std::nanf(""), 1.0f}, {kInfinity, 1.0f}, {1.0f, kInfinity}, {-kInfinity, kInfinity}}) {
    const auto result = compare({got}, {expected});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->mismatched, 1) << got << " for " << expected;
    EXPECT_TRUE(std::isinf(result->max_abs_error));
    EXPECT_TRUE(std::isinf(result->relative_l2));
  }
}

TEST(Compare, BlamesTheWorkloadForNanInTheExpectedOutput) {
  const auto result = compare({0, 0}, {0, std::nanf("")});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), ErrorCode::kInvalid);
  EXPECT_NE(result.status().message().find("1 of 2"), std::string::npos);
}

TEST(Compare, GivesRowMajorIndicesOfTheFirstFive) {
  const size_t elements = 3 * 5 * 7;
  std::vector<float> expected(elements, 1), got(elements, 1);
  for (size_t i = 40; i < 50; ++i) got[i] = 2;
  const auto result = compare(got, expected, {3, 5, 7});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->mismatched, 10);
  ASSERT_EQ(result->first_mismatches.size(), 5u);
  EXPECT_EQ(result->first_mismatches[0].index, (std::vector<int64_t>{1, 0, 5}));  // 40 = 35 + 5
  EXPECT_EQ(result->first_mismatches[4].index, (std::vector<int64_t>{1, 1, 2}));  // 44 = 35 + 7 + 2
}

TEST(Compare, ReportsErrorsOverAllElementsOfLargeOutputs) {
  const size_t elements = (1 << 17) + 13;  // many chunks and a tail
  std::vector<float> expected(elements), got(elements);
  double square_error = 0, square = 0;
  for (size_t i = 0; i < elements; ++i) {
    expected[i] = static_cast<float>(i % 100) - 50;
    got[i] = expected[i];
  }
  got[70001] += 0.25f;
  got[elements - 1] += 4;
  for (size_t i = 0; i < elements; ++i) {
    square_error += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    square += std::pow(static_cast<double>(expected[i]), 2);
  }
  const auto result = compare(got, expected);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->elements, static_cast<int64_t>(elements));
  EXPECT_EQ(result->mismatched, 1 + (std::fabs(expected[70001]) < 24 ? 1 : 0));
  EXPECT_NEAR(result->max_abs_error, 4, 1e-6);
  EXPECT_NEAR(result->relative_l2, std::sqrt(square_error / square), 1e-9);
  EXPECT_NEAR(result->max_rel_error,
              std::max(4 / std::fabs(expected[elements - 1]), 0.25f / std::fabs(expected[70001])), 1e-5);
}

TEST(Compare, ComparesOtherTypes) {
  const std::vector<int64_t> expected = {1, 2, 300}, got = {1, 3, 301};
  const auto result = compare_output("I", Dtype::kInt64, {3}, std::as_bytes(std::span(got)),
                                     std::as_bytes(std::span(expected)), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->mismatched, 1);  // 301 is within 1 % of 300
  const std::vector<uint16_t> half_expected = {0x3C00, 0x7C00, 0x0001}, half_got = {0x3C00, 0x7C00, 0x4000};
  const auto half = compare_output("H", Dtype::kFloat16, {3}, std::as_bytes(std::span(half_got)),
                                   std::as_bytes(std::span(half_expected)), {});
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->mismatched, 1);
  EXPECT_EQ(half->first_mismatches[0].got, 2.0);
  EXPECT_EQ(half->first_mismatches[0].expected, 0x1p-24);
}

TEST(Compare, AcceptsEmptyOutputs) {
  const auto result = compare({}, {}, {0, 4});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->matched_ratio, 1);
}

TEST(Compare, CallsMoreMismatchesThenLargerErrorsWorse) {
  OutputComparison none, small, large;
  small.mismatched = large.mismatched = 1;
  small.max_abs_error = 1;
  large.max_abs_error = 2;
  EXPECT_TRUE(is_worse(small, none));
  EXPECT_TRUE(is_worse(large, small));
  EXPECT_FALSE(is_worse(small, large));
  EXPECT_FALSE(is_worse(none, none));
}

}  // namespace
}  // namespace fixit

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "profiler/data/fill.h"
#include "profiler/data/philox.h"

namespace fixit {
namespace {

template <typename T>
std::vector<T> filled(Dtype dtype, const RandomStream& stream, size_t elements) {
  std::vector<T> values(elements);
  EXPECT_TRUE(fill_random(dtype, stream, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

// Known answers published with the Random123 library for philox4x32, 10 rounds.
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomData, FollowsTheDocumentedFormulaFromPhiloxWords) {
  const RandomStream stream{0x0123456789abcdefull, 3, 7};
  const size_t elements = 5000;  // more than one batch, and not a multiple of one
  const auto values = filled<float>(Dtype::kFloat32, stream, elements);
  for (size_t i = 0; i < elements; ++i) {
    const auto words = philox4x32_10({static_cast<uint32_t>(i / 4), 0, 3, 7}, {0x89abcdef, 0x01234567});
    const size_t pair = i % 4 / 2 * 2;
    const double u = ((words[pair] >> 8) + 1.0) / 16777216.0;
    const double angle = 2 * M_PI * (words[pair + 1] / 4294967296.0) - M_PI / 4;
    const double radius = std::sqrt(-2 * std::log(u));
    const double expected = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    ASSERT_NEAR(values[i], expected, 2e-5) << i;
  }
}

TEST(RandomData, IsStandardNormal) {
  const auto values = filled<float>(Dtype::kFloat32, {42, 0, 0}, 1 << 20);
  double sum = 0, squares = 0, fourths = 0, neighbours = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    if (i > 0) neighbours += x * static_cast<double>(values[i - 1]);
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourths / n, 3, 0.05);
  EXPECT_NEAR(neighbours / n, 0, 0.005);
}

TEST(RandomData, RepeatsForTheSameSeedTensorAndCallAndDiffersForAnyOther) {
  const RandomStream stream{1, 2, 3};
  const auto values = filled<float>(Dtype::kFloat32, stream, 1000);
  EXPECT_EQ(values, filled<float>(Dtype::kFloat32, stream, 1000));
  for (const RandomStream& other : {RandomStream{2, 2, 3}, RandomStream{1, 3, 3}, RandomStream{1, 2, 4},
                                    RandomStream{1 + (uint64_t{1} << 32), 2, 3}}) {
    const auto different = filled<float>(Dtype::kFloat32, other, 1000);
    int equal = 0;
    for (size_t i = 0; i < values.size(); ++i) equal += values[i] == different[i] ? 1 : 0;
    EXPECT_LT(equal, 5);
  }
}

TEST(RandomData, GivesAPrefixOfTheSameDataToASmallerTensor) {
  const auto large = filled<float>(Dtype::kFloat32, {9, 0, 1}, 3000);
  const auto small = filled<float>(Dtype::kFloat32, {9, 0, 1}, 1025);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(RandomData, KeepsIntegersSmallAndBoolsBinary) {
  const auto integers = filled<int32_t>(Dtype::kInt32, {5, 0, 0}, 4096);
  const std::set<int32_t> seen(integers.begin(), integers.end());
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_EQ(*seen.begin(), -8);
  EXPECT_EQ(*seen.rbegin(), 7);
  const auto flags = filled<uint8_t>(Dtype::kBool, {5, 0, 0}, 4096);
  EXPECT_EQ(std::set<uint8_t>(flags.begin(), flags.end()), (std::set<uint8_t>{0, 1}));
}

TEST(RandomData, RoundsHalfPrecisionToNearest) {
  const auto exact = filled<float>(Dtype::kFloat32, {6, 0, 0}, 10000);
  const auto brain = filled<uint16_t>(Dtype::kBfloat16, {6, 0, 0}, 10000);
  const auto half = filled<_Float16>(Dtype::kFloat16, {6, 0, 0}, 10000);
  for (size_t i = 0; i < exact.size(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(brain[i]) << 16;
    float widened;
    std::memcpy(&widened, &bits, sizeof(widened));
    ASSERT_NEAR(widened, exact[i], std::fabs(exact[i]) / 256);
    ASSERT_EQ(static_cast<float>(half[i]), static_cast<float>(static_cast<_Float16>(exact[i])));
  }
}

TEST(RandomData, RefusesTypesItCannotMake) {
  EXPECT_EQ(fill_random(Dtype::kFloat8E4m3fn, {}, {}).code(), ErrorCode::kUnsupported);
}

TEST(Poison, IsCountedElementByElement) {
  std::vector<float> values(1000);
  const auto bytes = std::as_writable_bytes(std::span(values));
  poison(Dtype::kFloat32, bytes);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(count_poison(Dtype::kFloat32, bytes), 1000);
  values[17] = std::nanf("");  // a NaN that arithmetic makes is not the poison
  values[999] = 0;
  EXPECT_EQ(count_poison(Dtype::kFloat32, bytes), 998);
  std::vector<int64_t> integers(10);
  const auto integer_bytes = std::as_writable_bytes(std::span(integers));
  poison(Dtype::kInt64, integer_bytes);
  integers[3] = 3;
  EXPECT_EQ(count_poison(Dtype::kInt64, integer_bytes), 9);
}

}  // namespace
}  // namespace fixit

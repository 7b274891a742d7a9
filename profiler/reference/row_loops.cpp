#include "profiler/reference/row_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/vector_clones.h"

namespace fixit {
namespace {

constexpr int64_t kLanes = 32;  // sums side by side: enough to hide the latency of an addition

inline float sum_of(const float* lanes) {
  float sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

// exp(x) as 2^k * exp(r), |r| <= ln(2) / 2, with a Taylor series of degree 7.
inline float exponential(float x) {
  const float clamped = std::max(x, -87.0f);
  // Adding and taking off 1.5 * 2^23 rounds to the nearest integer.
  const float k = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r =
      (clamped - k * 0.693359375f) + k * 2.12194440e-4f;  // ln(2) in two parts, the first one exact
  const float series =
      1 + r * (1 + r * (1.0f / 2 +
                        r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r / 5040))))));
  const float power = std::bit_cast<float>((static_cast<int32_t>(k) + 127) << 23);
  return x < -87.0f ? 0.0f : series * power;
}

}  // namespace

FIXIT_VECTOR_CLONES
float dot(const float* x, const float* y, int64_t count) {
  alignas(64) float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  for (; i < count; ++i) lanes[i % kLanes] += x[i] * y[i];
  return sum_of(lanes);
}

FIXIT_VECTOR_CLONES
void add_scaled(float* __restrict y, const float* __restrict x, float scale, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += scale * x[i];
}

FIXIT_VECTOR_CLONES
float largest(const float* x, int64_t count) {
  alignas(64) float lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  for (; i < count; ++i) lanes[i % kLanes] = std::max(lanes[i % kLanes], x[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

FIXIT_VECTOR_CLONES
float exponentiate(float* x, float scale, float shift, int64_t count) {
  alignas(64) float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      x[i + lane] = exponential(scale * x[i + lane] - shift);
      lanes[lane] += x[i + lane];
    }
  for (; i < count; ++i) {
    x[i] = exponential(scale * x[i] - shift);
    lanes[i % kLanes] += x[i];
  }
  return sum_of(lanes);
}

FIXIT_VECTOR_CLONES
void multiply(float* x, float scale, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] *= scale;
}

FIXIT_VECTOR_CLONES
void scale_by_weight(float* __restrict y, const float* __restrict x, float scale,
                     const float* __restrict weight, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale * weight[i];
}

}  // namespace fixit

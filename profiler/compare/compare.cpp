#include "profiler/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/vector_clones.h"

namespace fixit {
namespace {

constexpr size_t kLanes = 16;       // accumulators side by side, so that the compiler can use vectors
constexpr size_t kChunk = 1 << 14;  // elements summed in single-lane precision before they are added up
constexpr size_t kShownMismatches = 5;

struct Figures {
  int64_t mismatched = 0;
  int64_t expected_nan = 0;
  double max_abs = 0;
  double max_rel = 0;
  double sum_square_error = 0;
  double sum_square_expected = 0;
};

template <typename T>
inline bool matches(T got, T expected, T absolute, T relative) {
  const T bound = absolute + relative * std::fabs(expected);
  return got == expected ||
         (std::fabs(got - expected) <= bound && bound < std::numeric_limits<T>::infinity());
}

template <typename T>
struct LaneFigures {
  alignas(64) int32_t mismatched[kLanes] = {};
  alignas(64) int32_t expected_nan[kLanes] = {};
  alignas(64) T max_abs[kLanes] = {};
  alignas(64) T max_rel[kLanes] = {};
  alignas(64) double square_error[kLanes] = {};
  alignas(64) double square_expected[kLanes] = {};
};

// One element into its lane. An unequal element whose difference is not a number has an infinite error.
template <typename T>
inline void add_element(LaneFigures<T>& lanes, size_t lane, T x, T y, T absolute, T relative) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T raw = std::fabs(x - y);
  const T error = x == y ? T{0} : (raw <= std::numeric_limits<T>::max() ? raw : kInfinity);
  const T magnitude = std::fabs(y);
  const T bound = absolute + relative * magnitude;
  const bool match = (error <= bound) & (error < kInfinity);
  const T ratio = magnitude > T{0} ? error / magnitude : T{0};
  const T relative_error = ratio == ratio ? ratio : kInfinity;  // infinity / infinity
  lanes.mismatched[lane] += match ? 0 : 1;
  lanes.expected_nan[lane] += y != y ? 1 : 0;
  lanes.max_abs[lane] = error > lanes.max_abs[lane] ? error : lanes.max_abs[lane];
  lanes.max_rel[lane] = relative_error > lanes.max_rel[lane] ? relative_error : lanes.max_rel[lane];
  lanes.square_error[lane] += static_cast<double>(error) * static_cast<double>(error);
  lanes.square_expected[lane] += static_cast<double>(y) * static_cast<double>(y);
}

template <typename T>
inline void add_chunk(const T* got, const T* expected, size_t count, T absolute, T relative,
                      Figures& figures) {
  LaneFigures<T> lanes;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      add_element(lanes, lane, got[i + lane], expected[i + lane], absolute, relative);
  for (; i < count; ++i) add_element(lanes, i % kLanes, got[i], expected[i], absolute, relative);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    figures.mismatched += lanes.mismatched[lane];
    figures.expected_nan += lanes.expected_nan[lane];
    figures.max_abs = std::max(figures.max_abs, static_cast<double>(lanes.max_abs[lane]));
    figures.max_rel = std::max(figures.max_rel, static_cast<double>(lanes.max_rel[lane]));
    figures.sum_square_error += lanes.square_error[lane];
    figures.sum_square_expected += lanes.square_expected[lane];
  }
}

FIXIT_VECTOR_CLONES
void add_floats(const float* got, const float* expected, size_t count, float absolute, float relative,
                Figures& figures) {
  add_chunk(got, expected, count, absolute, relative, figures);
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) ? -1.0 : 1.0;
  if (exponent == 31)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <typename T>
T load_as(const std::byte* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

double element(Dtype dtype, const std::byte* bytes, size_t index) {
  switch (dtype) {
    case Dtype::kFloat32:
      return load_as<float>(bytes, index);
    case Dtype::kFloat16:
      return half_to_double(load_as<uint16_t>(bytes, index));
    case Dtype::kBfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(load_as<uint16_t>(bytes, index)) << 16);
    case Dtype::kInt64:
      return static_cast<double>(load_as<int64_t>(bytes, index));
    case Dtype::kInt32:
      return load_as<int32_t>(bytes, index);
    case Dtype::kInt16:
      return load_as<int16_t>(bytes, index);
    case Dtype::kInt8:
      return load_as<int8_t>(bytes, index);
    default:
      return load_as<uint8_t>(bytes, index);
  }
}

Figures measure(Dtype dtype, const std::byte* got, const std::byte* expected, size_t elements,
                const Tolerance& tolerance) {
  Figures figures;
  if (dtype == Dtype::kFloat32) {
    const auto* x = reinterpret_cast<const float*>(got);
    const auto* y = reinterpret_cast<const float*>(expected);
    for (size_t start = 0; start < elements; start += kChunk)
      add_floats(x + start, y + start, std::min(kChunk, elements - start),
                 static_cast<float>(tolerance.absolute), static_cast<float>(tolerance.relative), figures);
    return figures;
  }
  std::vector<double> x(std::min(kChunk, elements)), y(x.size());
  for (size_t start = 0; start < elements; start += kChunk) {
    const size_t count = std::min(kChunk, elements - start);
    for (size_t i = 0; i < count; ++i) {
      x[i] = element(dtype, got, start + i);
      y[i] = element(dtype, expected, start + i);
    }
    add_chunk(x.data(), y.data(), count, tolerance.absolute, tolerance.relative, figures);
  }
  return figures;
}

std::vector<int64_t> multi_index(size_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = static_cast<int64_t>(flat) % shape[axis];
    flat /= static_cast<size_t>(shape[axis]);
  }
  return index;
}

bool element_matches(Dtype dtype, double x, double y, const Tolerance& tolerance) {
  if (dtype == Dtype::kFloat32)  // the same precision as the vector loop, so that both agree on every element
    return matches(static_cast<float>(x), static_cast<float>(y), static_cast<float>(tolerance.absolute),
                   static_cast<float>(tolerance.relative));
  return matches(x, y, tolerance.absolute, tolerance.relative);
}

}  // namespace

Result<OutputComparison> compare_output(const std::string& name, Dtype dtype,
                                        const std::vector<int64_t>& shape, std::span<const std::byte> got,
                                        std::span<const std::byte> expected, const Tolerance& tolerance) {
  if (dtype == Dtype::kFloat8E4m3fn || dtype == Dtype::kFloat8E5m2 || dtype == Dtype::kFloat4E2m1)
    return Status(ErrorCode::kUnsupported,
                  fmt::format("output {}: type {} is not compared on the CPU target", name, name_of(dtype)));
  const size_t elements = expected.size() / static_cast<size_t>(dtype_bytes(dtype));
  const Figures figures = measure(dtype, got.data(), expected.data(), elements, tolerance);
  if (figures.expected_nan > 0)
    return Status(ErrorCode::kInvalid, fmt::format("output {}: {} of {} expected elements are NaN", name,
                                                   figures.expected_nan, elements));
  OutputComparison comparison;
  comparison.name = name;
  comparison.elements = static_cast<int64_t>(elements);
  comparison.mismatched = figures.mismatched;
  comparison.matched_ratio =
      elements == 0 ? 1.0 : 1.0 - static_cast<double>(figures.mismatched) / static_cast<double>(elements);
  comparison.max_abs_error = figures.max_abs;
  comparison.max_rel_error = figures.max_rel;
  if (std::isinf(figures.sum_square_error))
    comparison.relative_l2 = std::numeric_limits<double>::infinity();
  else if (figures.sum_square_error > 0)
    comparison.relative_l2 = std::sqrt(figures.sum_square_error / figures.sum_square_expected);
  if (figures.mismatched == 0) return comparison;
  for (size_t i = 0; i < elements && comparison.first_mismatches.size() < kShownMismatches; ++i) {
    const double x = element(dtype, got.data(), i);
    const double y = element(dtype, expected.data(), i);
    if (!element_matches(dtype, x, y, tolerance))
      comparison.first_mismatches.push_back({multi_index(i, shape), x, y});
  }
  return comparison;
}

bool is_worse(const OutputComparison& candidate, const OutputComparison& worst) {
  if (candidate.mismatched != worst.mismatched) return candidate.mismatched > worst.mismatched;
  return candidate.max_abs_error > worst.max_abs_error;
}

}  // namespace fixit

#include "profiler/data/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/vector_clones.h"
#include "profiler/data/philox.h"

namespace fixit {
namespace {

constexpr size_t kBlocks = 256;             // Philox blocks made at once
constexpr size_t kWords = 4 * kBlocks;      // words of them
constexpr uint32_t kPoison32 = 0x7FE5A5A5;  // a quiet NaN with a payload that arithmetic does not make
constexpr uint8_t kPoisonByte = 0xA5;

struct WordBatch {
  alignas(64) uint32_t word[4][kBlocks];
};

FIXIT_VECTOR_CLONES
void make_words(const RandomStream& stream, uint64_t first_block, WordBatch& batch) {
  const PhiloxKey key = {static_cast<uint32_t>(stream.seed), static_cast<uint32_t>(stream.seed >> 32)};
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint64_t block = first_block + i;
    const PhiloxCounter words = philox4x32_10(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream.tensor, stream.call}, key);
    batch.word[0][i] = words[0];
    batch.word[1][i] = words[1];
    batch.word[2][i] = words[2];
    batch.word[3][i] = words[3];
  }
}

// ln(u) for u in (0, 1]: exponent apart, then 2 artanh((m - 1) / (m + 1)) as a series; relative error below
// 1e-6.
inline float natural_log(float u) {
  const uint32_t bits = std::bit_cast<uint32_t>(u);
  // Moves the mantissa to [sqrt(1/2), sqrt(2)), where the series is short.
  const uint32_t shifted = bits + (0x3F800000u - 0x3F3504F3u);
  const float exponent = static_cast<float>(static_cast<int32_t>(shifted >> 23) - 127);
  const float mantissa = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u);
  const float t = (mantissa - 1.0f) / (mantissa + 1.0f);
  const float s = t * t;
  const float series = 1.0f + s * (1.0f / 3 + s * (1.0f / 5 + s * (1.0f / 7 + s * (1.0f / 9))));
  return exponent * 0.693147181f + 2.0f * t * series;
}

// Box-Muller: two words to two independent standard normal values.
inline void normal_pair(uint32_t word0, uint32_t word1, float& first, float& second) {
  const float u = static_cast<float>((word0 >> 8) + 1) * 0x1p-24f;
  const float radius = std::sqrt(-2.0f * natural_log(u));
  // Quadrant from the two top bits; the rest is an angle in [-pi/4, pi/4), where both series are short.
  const uint32_t quadrant = word1 >> 30;
  const float fraction = static_cast<float>(static_cast<int32_t>((word1 << 2) >> 8)) * 0x1p-24f - 0.5f;
  const float a = fraction * 1.57079633f;
  const float s = a * a;
  const float sine = a * (1.0f - s * (1.0f / 6 - s * (1.0f / 120 - s * (1.0f / 5040 - s * (1.0f / 362880)))));
  const float cosine = 1.0f - s * (0.5f - s * (1.0f / 24 - s * (1.0f / 720 - s * (1.0f / 40320))));
  const float x = (quadrant & 1) ? sine : cosine;
  const float y = (quadrant & 1) ? cosine : sine;
  const uint32_t sign_x = ((quadrant + 1) & 2) << 30;  // cosine is negative in quadrants 1 and 2
  const uint32_t sign_y = (quadrant & 2) << 30;        // sine in 2 and 3
  first = radius * std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ sign_x);
  second = radius * std::bit_cast<float>(std::bit_cast<uint32_t>(y) ^ sign_y);
}

struct NormalBatch {
  alignas(64) float value[4][kBlocks];
};

FIXIT_VECTOR_CLONES
void make_normals(const WordBatch& words, NormalBatch& normals) {
  for (size_t i = 0; i < kBlocks; ++i) {
    normal_pair(words.word[0][i], words.word[1][i], normals.value[0][i], normals.value[1][i]);
    normal_pair(words.word[2][i], words.word[3][i], normals.value[2][i], normals.value[3][i]);
  }
}

FIXIT_VECTOR_CLONES
void interleave(const NormalBatch& normals, float* out) {
  for (size_t i = 0; i < kBlocks; ++i)
    for (size_t lane = 0; lane < 4; ++lane) out[4 * i + lane] = normals.value[lane][i];
}

uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);  // nearest, ties to even
}

// For the normal generator's range (|value| < 8): no overflow; small values become subnormal or zero.
uint16_t to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14f)  // subnormal: units of 2^-24; nearbyint rounds ties to even
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
  const uint32_t kept = (bits & 0x7FFFFFFF) - (112u << 23);
  return static_cast<uint16_t>(sign | ((kept + 0xFFF + ((kept >> 13) & 1)) >> 13));
}

// Calls store(element, index) for the words or normals of a whole tensor.
template <typename T, typename FromNormal>
void fill_normals(const RandomStream& stream, std::span<std::byte> out, FromNormal convert) {
  const size_t elements = out.size() / sizeof(T);
  WordBatch words;
  NormalBatch normals;
  alignas(64) float values[kWords];
  for (size_t start = 0; start < elements; start += kWords) {
    make_words(stream, start / 4, words);
    make_normals(words, normals);
    interleave(normals, values);
    const size_t count = std::min(kWords, elements - start);
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(out.data() + start * sizeof(T), values, count * sizeof(T));
    } else {
      for (size_t i = 0; i < count; ++i) {
        const T value = convert(values[i]);
        std::memcpy(out.data() + (start + i) * sizeof(T), &value, sizeof(T));
      }
    }
  }
}

template <typename T, typename FromWord>
void fill_words(const RandomStream& stream, std::span<std::byte> out, FromWord convert) {
  const size_t elements = out.size() / sizeof(T);
  WordBatch words;
  for (size_t start = 0; start < elements; start += kWords) {
    make_words(stream, start / 4, words);
    const size_t count = std::min(kWords, elements - start);
    for (size_t i = 0; i < count; ++i) {
      const T value = convert(words.word[i % 4][i / 4]);
      std::memcpy(out.data() + (start + i) * sizeof(T), &value, sizeof(T));
    }
  }
}

template <typename T>
T small_integer(uint32_t word) {
  return static_cast<T>(static_cast<int>(word >> 28) - 8);
}

}  // namespace

Status fill_random(Dtype dtype, const RandomStream& stream, std::span<std::byte> out) {
  switch (dtype) {
    case Dtype::kFloat32:
      fill_normals<float>(stream, out, [](float value) { return value; });
      return {};
    case Dtype::kFloat16:
      fill_normals<uint16_t>(stream, out, to_float16);
      return {};
    case Dtype::kBfloat16:
      fill_normals<uint16_t>(stream, out, to_bfloat16);
      return {};
    case Dtype::kInt64:
      fill_words<int64_t>(stream, out, small_integer<int64_t>);
      return {};
    case Dtype::kInt32:
      fill_words<int32_t>(stream, out, small_integer<int32_t>);
      return {};
    case Dtype::kInt16:
      fill_words<int16_t>(stream, out, small_integer<int16_t>);
      return {};
    case Dtype::kInt8:
      fill_words<int8_t>(stream, out, small_integer<int8_t>);
      return {};
    case Dtype::kBool:
      fill_words<uint8_t>(stream, out, [](uint32_t word) { return static_cast<uint8_t>(word >> 31); });
      return {};
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat4E2m1:
      break;
  }
  return Status(ErrorCode::kUnsupported,
                "random data of type " + std::string(name_of(dtype)) +
                    " is not made on the CPU target; store the tensor in the workload");
}

FIXIT_VECTOR_CLONES
static void set_words(uint32_t* words, size_t count, uint32_t value) {
  for (size_t i = 0; i < count; ++i) words[i] = value;
}

FIXIT_VECTOR_CLONES
static int64_t count_words(const uint32_t* words, size_t count, uint32_t value) {
  int64_t found = 0;
  for (size_t i = 0; i < count; ++i) found += words[i] == value ? 1 : 0;
  return found;
}

void poison(Dtype dtype, std::span<std::byte> out) {
  if (dtype == Dtype::kFloat32)
    set_words(reinterpret_cast<uint32_t*>(out.data()), out.size() / 4, kPoison32);
  else
    std::memset(out.data(), kPoisonByte, out.size());
}

int64_t count_poison(Dtype dtype, std::span<const std::byte> bytes) {
  if (dtype == Dtype::kFloat32)
    return count_words(reinterpret_cast<const uint32_t*>(bytes.data()), bytes.size() / 4, kPoison32);
  const size_t width = std::max(1, dtype_bytes(dtype));
  int64_t found = 0;
  for (size_t start = 0; start + width <= bytes.size(); start += width) {
    bool whole = true;
    for (size_t i = 0; i < width; ++i) whole = whole && bytes[start + i] == std::byte{kPoisonByte};
    found += whole ? 1 : 0;
  }
  return found;
}

}  // namespace fixit

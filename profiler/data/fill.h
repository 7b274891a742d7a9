// Random tensor contents, a pure function of (seed, tensor, call), and the pattern that outputs are poisoned
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/status.h"
#include "core/trace/definition.h"

namespace fixit {

struct RandomStream {
  uint64_t seed = 0;    // of the evaluation: the Philox key
  uint32_t tensor = 0;  // position among the definition's inputs
  uint32_t call = 0;    // of the evaluation, never repeated within it
};

// Philox counter (block low, block high, tensor, call), four words a block. Floating types: standard normal
// by Box-Muller on pairs of words, u1 = (w0 / 256 + 1) / 2^24 in (0, 1], angle = 2 pi (w1 / 2^32) + pi / 4;
// float16 and bfloat16 are rounded from it. Integers: uniform in -8..7; bool: 0 or 1. The same bits on every
// machine. kUnsupported for 8- and 4-bit floating types.
Status fill_random(Dtype dtype, const RandomStream& stream, std::span<std::byte> out);

// Every element becomes a value that a kernel does not write by chance: for float32 a NaN of a rare payload.
void poison(Dtype dtype, std::span<std::byte> out);
// Elements that still hold the poison.
int64_t count_poison(Dtype dtype, std::span<const std::byte> bytes);

}  // namespace fixit

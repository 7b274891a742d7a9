// torch.allclose on one output, with figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/record/verdict.h"
#include "core/trace/definition.h"

namespace fixit {

struct Tolerance {
  double absolute = 1e-2;
  double relative = 1e-2;
};

// An element matches where got == expected or |got - expected| <= absolute + relative * |expected|, both
// sides finite: NaN never matches, an infinity matches only itself. Figures are over all elements; a mismatch
// that is not finite counts as an infinite error. Integers and bool compare by the same rule in double
// precision. kInvalid if an expected element is NaN (the workload is at fault, not the candidate),
// kUnsupported for types that the CPU target does not compute. REQUIRES: both spans have the size of `shape`.
Result<OutputComparison> compare_output(const std::string& name, Dtype dtype,
                                        const std::vector<int64_t>& shape, std::span<const std::byte> got,
                                        std::span<const std::byte> expected, const Tolerance& tolerance);

// True if `candidate` is worse than `worst`: more mismatches, then a larger absolute error.
bool is_worse(const OutputComparison& candidate, const OutputComparison& worst);

}  // namespace fixit

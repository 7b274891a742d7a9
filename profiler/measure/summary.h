// Samples to figures. Knows nothing of where samples come from.
#pragma once

#include <vector>

#include "core/record/verdict.h"

namespace fixit {

// Median, quartiles (linear interpolation between order statistics) and minimum of samples in milliseconds.
// All zero for none.
LatencySummary summarize(std::vector<double> samples_ms, int discarded = 0);

// A summary is noisy where its quartiles lie further apart than this share of its median ...
inline constexpr double kMaxRelativeSpread = 0.15;
// ... or where it has fewer samples than this.
inline constexpr int kMinSamples = 5;
bool is_noisy(const LatencySummary& summary);

}  // namespace fixit

#include "profiler/measure/summary.h"

#include <algorithm>
#include <cmath>

namespace fixit {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - static_cast<double>(below));
}

}  // namespace

LatencySummary summarize(std::vector<double> samples_ms, int discarded) {
  LatencySummary summary;
  summary.discarded = discarded;
  summary.samples = static_cast<int>(samples_ms.size());
  if (samples_ms.empty()) return summary;
  std::sort(samples_ms.begin(), samples_ms.end());
  summary.min_ms = samples_ms.front();
  summary.q1_ms = quantile(samples_ms, 0.25);
  summary.median_ms = quantile(samples_ms, 0.5);
  summary.q3_ms = quantile(samples_ms, 0.75);
  return summary;
}

bool is_noisy(const LatencySummary& summary) {
  if (summary.samples < kMinSamples || !(summary.median_ms > 0)) return true;
  return summary.q3_ms - summary.q1_ms > kMaxRelativeSpread * summary.median_ms;
}

}  // namespace fixit

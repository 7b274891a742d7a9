#include "coordinator/chain/mining.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/config/config_files.h"

namespace fixit {
namespace {

using Failures = std::vector<const TurnRecord*>;

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  if (patterns.empty()) return true;
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return name_matches(pattern, name); });
}

bool is_wanted(const TurnRecord& turn, const FailureFilter& filter) {
  if (turn.axes.kind != JobKind::kRollout || !is_failure(turn.status) || turn.turn > filter.max_turn)
    return false;
  if (turn.source.empty() || turn.system.empty() || turn.task.empty() || turn.reply.empty() ||
      turn.feedback.empty())
    return false;
  const std::string_view status = name_of(turn.status);
  if (std::find(filter.statuses.begin(), filter.statuses.end(), status) == filter.statuses.end())
    return false;
  return matches_any(filter.problems, turn.axes.problem);
}

auto order_key(const TurnRecord* turn) {
  return std::tie(turn->axes.problem, turn->turn, turn->axes.job);
}

bool in_order(const TurnRecord* left, const TurnRecord* right) {
  return order_key(left) < order_key(right);
}

// REQUIRES: `failures` are of one problem and in order.
Failures capped(const Failures& failures, int64_t cap) {
  std::map<std::pair<std::string_view, int>, Failures> strata;
  for (const TurnRecord* turn : failures) strata[{name_of(turn->status), turn->turn}].push_back(turn);
  std::vector<int64_t> sizes;
  for (const auto& [key, members] : strata) sizes.push_back(static_cast<int64_t>(members.size()));
  const std::vector<int64_t> quotas = largest_remainder(sizes, cap);
  Failures kept;
  size_t index = 0;
  for (const auto& [key, members] : strata)
    kept.insert(kept.end(), members.begin(), members.begin() + quotas[index++]);
  return kept;
}

}  // namespace

std::vector<int64_t> largest_remainder(std::span<const int64_t> sizes, int64_t cap) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<int64_t> quotas(sizes.begin(), sizes.end());
  if (cap >= total) return quotas;
  int64_t left = cap;
  for (size_t i = 0; i < sizes.size(); ++i) {
    quotas[i] = sizes[i] * cap / total;
    left -= quotas[i];
  }
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(sizes[a] * cap % total, sizes[a]) > std::pair(sizes[b] * cap % total, sizes[b]);
  });
  for (int64_t i = 0; i < left; ++i) ++quotas[order[static_cast<size_t>(i)]];
  return quotas;
}

std::vector<const TurnRecord*> mine_failures(const SweepRecords& records, const RecipeConfig& recipe) {
  std::map<std::string, Failures> by_problem;
  for (const TurnRecord& turn : records.turns)
    if (is_wanted(turn, recipe.failures)) by_problem[turn.axes.problem].push_back(&turn);
  Failures mined;
  for (auto& [problem, failures] : by_problem) {
    std::sort(failures.begin(), failures.end(), in_order);
    const Failures kept = recipe.per_definition > 0 ? capped(failures, recipe.per_definition) : failures;
    mined.insert(mined.end(), kept.begin(), kept.end());
  }
  std::sort(mined.begin(), mined.end(), in_order);
  return mined;
}

}  // namespace fixit

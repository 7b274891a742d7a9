// Which failures a recipe takes from a sweep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coordinator/chain/sweep_records.h"
#include "core/config/recipe_config.h"

namespace fixit {

// Shares `cap` among strata of the given sizes in proportion, by largest remainder: each gets the floor of
// size * cap / total, and what is left goes one each to the largest remainders, ties to the larger stratum
// and then to the earlier one. Returns one quota per stratum; all of it where cap >= total.
std::vector<int64_t> largest_remainder(std::span<const int64_t> sizes, int64_t cap);

// The rollout turns that failed with one of the recipe's statuses, at most max_turn, in problems that match,
// and hold everything that a row needs (source, prompt, reply, feedback); then at most per_definition of each
// problem, shared among its (status, turn) strata. Sorted by problem, turn, job. Pointers into `records`.
std::vector<const TurnRecord*> mine_failures(const SweepRecords& records, const RecipeConfig& recipe);

}  // namespace fixit

// A sweep file as written by a user: problem x model x GPU x pack x sample. Loading: config_files.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/codec.h"

namespace fixit {

struct ProblemSelector {
  std::string pattern;   // definition name, or a pattern with * and ?
  std::string workload;  // uuid of the one workload to use; empty: all of the definition's
  FIXIT_FIELDS(pattern, workload);
};

struct PackSelector {
  std::string name;
  std::vector<std::string> use;       // fragments' pack names, in order; a plain name uses itself
  std::vector<std::string> problems;  // patterns; empty: all problems
  FIXIT_FIELDS(name, use, problems);
};

struct SweepBudget {
  int64_t tokens = 0;  // 0: none
  double usd = 0;      // 0: none
  FIXIT_FIELDS(tokens, usd);
};

struct SweepConfig {
  std::string name;                     // [a-z0-9][a-z0-9._-]{0,63}
  std::vector<std::string> trace_sets;  // folders, relative to the sweep file's folder or the working folder
  std::vector<ProblemSelector> problems;
  std::vector<std::string> models;
  std::vector<std::string> gpus;
  std::vector<PackSelector> packs;
  int samples = 1;              // 1..10000
  int turns = 8;                // 1..64
  double target_speedup = 1.2;  // > 0
  int priority = 5;             // 1..9, higher is served more often
  SweepBudget budget;
  std::string recipe;  // `fixit: {recipe: NAME}`; empty: no dataset
  FIXIT_FIELDS(name, trace_sets, problems, models, gpus, packs, samples, turns, target_speedup, priority,
               budget, recipe);
};

}  // namespace fixit

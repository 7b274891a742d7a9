// recipes/NAME.yaml: how failures become dataset rows. Loading: config_files.h.
#pragma once

#include <string>
#include <vector>

#include "core/base/codec.h"

namespace fixit {

struct FailureFilter {
  std::vector<std::string> statuses;  // names of TurnStatus
  int max_turn = 63;                  // 0-based turn, inclusive
  std::vector<std::string> problems;  // patterns; empty: all
  FIXIT_FIELDS(statuses, max_turn, problems);
};

struct RepairStage {
  std::string model;
  int turns = 5;
  double target_speedup = 0.15;
  double min_speedup = 0;             // of a kept repair
  bool require_instructions = false;  // keep only repairs whose verdict says yes
  std::string keep = "best";          // best, latest, all: which CORRECT turns of one repair job make rows
  FIXIT_FIELDS(model, turns, target_speedup, min_speedup, require_instructions, keep);
};

struct RationaleStage {
  std::string model;
  int min_chars = 200;
  int max_chars = 50000;
  std::vector<std::string> forbidden;  // phrases, compared without case
  FIXIT_FIELDS(model, min_chars, max_chars, forbidden);
};

struct RecipeConfig {
  std::string name;  // the file's stem
  FailureFilter failures;
  int per_definition = 0;  // cap on failures per problem, largest remainder over (status, turn); 0: none
  RepairStage repair;
  RationaleStage rationale;
  FIXIT_FIELDS(name, failures, per_definition, repair, rationale);
};

}  // namespace fixit

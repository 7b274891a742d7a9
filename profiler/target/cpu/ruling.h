// What a step of an evaluation concludes about a candidate.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/record/verdict.h"

namespace fixit {

struct Ruling {
  TurnStatus status = TurnStatus::kCorrect;  // kCorrect: nothing found, go on
  std::string check;
  std::string evidence;
  std::optional<Fault> fault;

  bool passed() const { return status == TurnStatus::kCorrect; }
  static Ruling infra(std::string check, std::string evidence) {
    return {TurnStatus::kInfra, std::move(check), std::move(evidence), std::nullopt};
  }
};

}  // namespace fixit

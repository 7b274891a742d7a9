// What a rationale must be to enter a dataset.
#pragma once

#include <string>

#include "core/config/recipe_config.h"

namespace fixit {

struct RationaleCheck {
  bool accepted = false;
  std::string rule;  // too_short, too_long, forbidden_phrase:..., mentions_repair, thinking_tags, code_block,
                     // language
  std::string text;  // the rationale proper: inside <rationale>...</rationale> where given, trimmed
};

RationaleCheck check_rationale(const std::string& reply, const RationaleStage& limits);

}  // namespace fixit

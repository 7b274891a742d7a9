// Recorded replies of a replay model.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/base/status.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

// Loads SLOT.md files below a folder into slot -> reply ("rollout/PROBLEM/sample0/turn2", see replay_slot()).
// A file may begin with YAML front matter between two `---` lines: `finish_reason`, `reasoning`. Errors name
// file and line.
Result<std::map<std::string, RecordedReply>> load_recorded_replies(const std::filesystem::path& folder);

}  // namespace fixit

// A sweep's progress on a terminal or in a log.
#pragma once

#include <functional>
#include <string>

#include "core/base/status.h"
#include "core/queue/registry.h"

namespace fixit {

// "rollout 12/32 | CORRECT 8, COMPILE_ERROR 2 | 12,345 tokens": one line, no line end.
std::string progress_line(const SweepState& state);

// Shows the sweep's state until its phase is done or failed: a line rewritten in place on a terminal, else a line
// whenever it changed. Ends early with the error of `check` (every half second) or kCancelled when interrupted.
Result<SweepState> watch_until_done(Registry& registry, const std::string& sweep,
                                    const std::function<Status()>& check);

}  // namespace fixit

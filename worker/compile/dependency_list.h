// The list of read files that a compiler writes with -MD or -M, in make's syntax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fixit {

// The prerequisites of the one rule in `text`, unescaped, in order. kCorrupt for anything else than one rule,
// so that a list that is not understood is never taken for an empty one.
Result<std::vector<std::string>> parse_dependency_list(std::string_view text);

}  // namespace fixit

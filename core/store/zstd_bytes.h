// zstd of whole byte strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fixit {

// Absent where compression does not pay (it would save less than an eighth).
std::optional<std::string> zstd_if_smaller(std::string_view bytes);
// kCorrupt unless the frame holds exactly `size` bytes.
Result<std::string> zstd_expand(std::string_view frame, uint64_t size);

}  // namespace fixit

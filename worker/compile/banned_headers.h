// Headers that a candidate may not include, and why.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fixit {

struct BannedHeader {
  std::string header;  // as the compiler read it
  std::string reason;  // for the model
};

// `path` is one entry of a compiler's dependency list.
std::optional<BannedHeader> find_banned_header(std::string_view path);

}  // namespace fixit

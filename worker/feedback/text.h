// Bounded pieces of text.
#pragma once

#include <string>
#include <string_view>

namespace fixit {

// At most `limit` bytes of `text`, cut between UTF-8 characters, ending in "..." where something was cut.
std::string clip(std::string_view text, size_t limit);

// The largest size <= `at` that does not split a UTF-8 character of `text`.
size_t utf8_boundary(std::string_view text, size_t at);

}  // namespace fixit

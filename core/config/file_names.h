// Rules on names that become file names. Private to core/config.
#pragma once

#include <string>
#include <string_view>

namespace fixit {

// [A-Za-z0-9][A-Za-z0-9._+-]{0,99} without `..`: cannot leave a folder, nor break a lane's name.
bool is_plain_name(std::string_view name);
inline constexpr std::string_view kPlainNameRule =
    "letters, digits, dots, dashes, underscores and plus signs, at most 100, beginning with a letter or "
    "digit";

// [a-z0-9][a-z0-9._-]{0,63} without `..`.
bool is_sweep_name(std::string_view name);
// [A-Z_][A-Z0-9_]{0,63}: what people name environment variables, and what keys do not look like.
bool is_variable_name(std::string_view name);

}  // namespace fixit

// What a candidate may link to. Private to the CPU target.
#pragma once

#include <string>
#include <string_view>

namespace fixit {

// Empty where a candidate may use the undefined symbol; else why not ("runs other programs"; "is not on the
// allow-list" for an unknown one).
std::string why_symbol_is_refused(std::string_view name);

bool is_library_allowed(std::string_view soname);

}  // namespace fixit

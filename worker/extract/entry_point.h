// Does a C++ source define a function of this name? Used to choose between blocks of a reply, never to judge
// one.
#pragma once

#include <string_view>

namespace fixit {

// True where the text has `name ( ... )` followed by a body, outside comments and literals. One pass, so its
// time is linear in `source` whatever the source is.
bool defines_function(std::string_view source, std::string_view name);

}  // namespace fixit

// The C side of binding c.
#pragma once

#include <string>
#include <string_view>

#include "core/trace/definition.h"

namespace fixit {

// Element type of a tensor in the host's C++: float16, bfloat16 and float8 are their bits (uint16_t,
// uint8_t), float4_e2m1 is two elements a byte (uint8_t).
std::string_view element_type(Dtype dtype);

// `extern "C" void run(...);` for a definition: inputs, outputs, then the var axes. kUnsupported for a scalar
// whose type C cannot pass by value, naming the input.
Result<std::string> c_declaration(const Definition& definition);

}  // namespace fixit

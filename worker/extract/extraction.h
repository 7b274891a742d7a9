// Finds the kernel in a model's reply.
#pragma once

#include <string>
#include <string_view>

#include "core/record/turn_status.h"

namespace fixit {

struct Extraction {
  // kPending: found. Else kNoCode or kTruncated, with `reason` for the model.
  TurnStatus status = TurnStatus::kPending;
  std::string source;
  std::string language;  // the fence's tag as written
  std::string reason;
};

// Fenced blocks tagged cpp, cuda, c++, cu, cc, cxx (any case, attributes after the tag allowed), fences of
// three or more backticks or tildes, indented up to three columns, LF or CRLF. Thinking (<think>...</think>,
// also unclosed) is never searched. The last complete block that defines `entry_point` wins, else the last
// complete block unless an unclosed one follows; an unclosed fence is never code: TRUNCATED where
// finish_reason is "length", else NO_CODE. CRLF becomes LF in `source`.
Extraction extract_kernel(std::string_view reply, std::string_view finish_reason,
                          std::string_view entry_point);

}  // namespace fixit

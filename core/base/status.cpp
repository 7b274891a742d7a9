#include "core/base/status.h"

namespace fixit {

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(name_of(code_)) + ": " + message_;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

}  // namespace fixit

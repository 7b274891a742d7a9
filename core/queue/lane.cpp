#include "core/queue/job_queue.h"
#include "fmt/format.h"

namespace fixit {

Result<Lane> Lane::parse(std::string_view name) {
  const size_t at = name.rfind('@');
  // Braces would end the hash tag that keeps a lane's keys together.
  if (at == std::string_view::npos || at == 0 || at + 1 == name.size() ||
      name.find_first_of("{}") != std::string_view::npos)
    return Status(ErrorCode::kInvalid,
                  fmt::format("lane \"{}\": write MODEL@GPU, without braces", std::string(name)));
  return Lane{std::string(name.substr(0, at)), std::string(name.substr(at + 1))};
}

}  // namespace fixit

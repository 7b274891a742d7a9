#include "core/record/job.h"

namespace fixit {

std::string job_id(std::string_view sweep, JobKind kind, std::string_view problem, std::string_view model,
                   std::string_view gpu, std::string_view pack, int sample,
                   const std::optional<Origin>& origin) {
  const std::string from = origin ? encode(*origin) : std::string();
  return sha256_of({sweep, name_of(kind), problem, model, gpu, pack, std::to_string(sample), from})
      .substr(0, 24);
}

}  // namespace fixit

// Workloads inside other documents. Private to core/trace.
#pragma once

#include <string>
#include <string_view>

#include "core/trace/definition.h"

namespace fixit {

// A bare workload; `path` is where it sits in the document that `where` names (empty: it is the document).
Result<Workload> workload_from_json(const Json& json, std::string_view where, std::string_view path);

struct WorkloadLine {
  std::string definition;  // empty: a bare workload, which does not say whose it is
  Workload workload;
  std::string json;  // the bare workload as one line
};
Result<WorkloadLine> parse_workload_line(std::string_view text, std::string_view where);

}  // namespace fixit

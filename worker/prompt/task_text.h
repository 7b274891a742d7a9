// Parts of the task message.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/trace/definition.h"

namespace fixit {

// The definition's JSON, indented, keys in their own order, without `tags`.
Result<std::string> definition_text(std::string_view json, std::string_view name);

// One line per workload: every var axis and every scalar input that has a value.
std::string workloads_text(const Definition& definition, const std::vector<Workload>& workloads);

// What the arguments of binding c are, beyond the declaration.
std::string arguments_text(const Definition& definition);

// `code` in a fence that is longer than any run of backticks inside it.
std::string fenced(std::string_view tag, std::string_view code);

}  // namespace fixit

#include "worker/prompt/task_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <variant>

#include "worker/prompt/c_declaration.h"

namespace fixit {
namespace {

std::string scalar_text(const ScalarInput& input) {
  return std::visit([](auto value) { return fmt::format("{}", value); }, input.value);
}

bool is_bits(Dtype dtype) {
  return dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat8E4m3fn ||
         dtype == Dtype::kFloat8E5m2 || dtype == Dtype::kFloat4E2m1;
}

std::string packing_note(const Definition& definition) {
  std::set<std::string_view> as_bits;
  const auto look = [&as_bits](const std::vector<TensorSpec>& tensors) {
    for (const TensorSpec& tensor : tensors)
      if (is_bits(tensor.dtype)) as_bits.insert(name_of(tensor.dtype));
  };
  look(definition.inputs);
  look(definition.outputs);
  if (as_bits.empty()) return "";
  std::string note = fmt::format("- {}: elements are given as their bits.\n", fmt::join(as_bits, ", "));
  if (as_bits.count("float4_e2m1") > 0)
    note += "- float4_e2m1: two elements a byte, the lower index in the low half.\n";
  return note;
}

}  // namespace

Result<std::string> definition_text(std::string_view json, std::string_view name) {
  FIXIT_ASSIGN_OR_RETURN(Json document, parse_json(json, name));
  if (document.is_object()) document.erase("tags");
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string workloads_text(const Definition& definition, const std::vector<Workload>& workloads) {
  std::string text;
  for (size_t i = 0; i < workloads.size(); ++i) {
    std::vector<std::string> values;
    for (const Axis& axis : definition.axes) {
      if (axis.value) continue;
      for (const auto& [name, value] : workloads[i].axes)
        if (name == axis.name) values.push_back(fmt::format("{} = {}", name, value));
    }
    for (const TensorSpec& input : definition.inputs) {
      const auto found = workloads[i].inputs.find(input.name);
      if (found == workloads[i].inputs.end()) continue;
      if (const auto* scalar = std::get_if<ScalarInput>(&found->second))
        values.push_back(fmt::format("{} = {}", input.name, scalar_text(*scalar)));
    }
    text +=
        fmt::format("{}. {}\n", i + 1,
                    values.empty() ? "all axes are constant" : fmt::format("{}", fmt::join(values, ", ")));
  }
  return text;
}

std::string arguments_text(const Definition& definition) {
  std::string text =
      "- Tensors are dense and row-major; every pointer is aligned to 256 bytes. Outputs are written by the "
      "kernel and "
      "hold nothing useful before.\n"
      "- Inputs must not be written.\n";
  const auto zero_d = [](const TensorSpec& tensor) { return !tensor.scalar && tensor.shape.empty(); };
  if (std::any_of(definition.inputs.begin(), definition.inputs.end(), zero_d) ||
      std::any_of(definition.outputs.begin(), definition.outputs.end(), zero_d))
    text += "- A tensor without axes is a pointer to its one element.\n";
  if (!definition.var_axes().empty())
    text += "- The last arguments are the sizes of the variable axes; constant axes are in the definition.\n";
  return text + packing_note(definition);
}

std::string fenced(std::string_view tag, std::string_view code) {
  size_t longest = 0;
  for (size_t at = code.find('`'); at != std::string_view::npos; at = code.find('`', at)) {
    const size_t end = std::min(code.find_first_not_of('`', at), code.size());
    longest = std::max(longest, end - at);
    at = end;
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  return fmt::format("{}{}\n{}{}{}\n", fence, tag, code, code.ends_with('\n') ? "" : "\n", fence);
}

}  // namespace fixit

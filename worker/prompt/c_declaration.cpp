#include "worker/prompt/c_declaration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace fixit {
namespace {

bool is_keyword(std::string_view word) {
  // Those that a definition could plausibly use as the name of a tensor or axis.
  static constexpr std::array<std::string_view, 26> kWords = {
      "and",     "auto", "bool",   "break", "case",     "char",  "class", "const", "default",
      "delete",  "do",   "double", "else",  "float",    "for",   "if",    "int",   "long",
      "mutable", "new",  "not",    "or",    "register", "short", "this",  "xor"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// A parameter's name: the definition's where C++ takes it and no parameter has it already.
class ParameterNames {
 public:
  std::string take(std::string_view wanted) {
    std::string name;
    for (const char c : wanted) {
      const bool word =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      name.push_back(word ? c : '_');
    }
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(name.begin(), '_');
    if (is_keyword(name)) name.push_back('_');
    while (!taken_.insert(name).second) name.push_back('_');
    return name;
  }

 private:
  std::set<std::string> taken_;
};

bool passed_by_value(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kInt64 || dtype == Dtype::kInt32 ||
         dtype == Dtype::kInt16 || dtype == Dtype::kInt8 || dtype == Dtype::kBool;
}

}  // namespace

std::string_view element_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return "float";
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
      return "uint16_t";
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat4E2m1:
      return "uint8_t";
    case Dtype::kInt64:
      return "int64_t";
    case Dtype::kInt32:
      return "int32_t";
    case Dtype::kInt16:
      return "int16_t";
    case Dtype::kInt8:
      return "int8_t";
    case Dtype::kBool:
      return "bool";
  }
  return "uint8_t";
}

Result<std::string> c_declaration(const Definition& definition) {
  ParameterNames names;
  std::vector<std::string> parameters;
  for (const TensorSpec& input : definition.inputs) {
    const std::string_view type = element_type(input.dtype);
    if (input.scalar && !passed_by_value(input.dtype))
      return Status(
          ErrorCode::kUnsupported,
          fmt::format("definition {}: binding c cannot pass input {} by value, because it is a {} scalar",
                      definition.name, input.name, name_of(input.dtype)));
    parameters.push_back(input.scalar ? fmt::format("{} {}", type, names.take(input.name))
                                      : fmt::format("const {}* {}", type, names.take(input.name)));
  }
  for (const TensorSpec& output : definition.outputs)
    parameters.push_back(fmt::format("{}* {}", element_type(output.dtype), names.take(output.name)));
  for (const std::string& axis : definition.var_axes())
    parameters.push_back(fmt::format("int64_t {}", names.take(axis)));
  return fmt::format("extern \"C\" void run({});", fmt::join(parameters, ", "));
}

}  // namespace fixit

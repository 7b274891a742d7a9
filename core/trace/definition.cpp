#include "core/trace/definition.h"

#include <algorithm>
#include <set>

#include "core/trace/json_fields.h"

namespace fixit {
namespace {

constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxRank = 16;

// Names become parts of file names and lines of logs.
Status check_name(const JsonFields& fields, std::string_view key, std::string_view name) {
  if (name.size() > kMaxNameBytes) return fields.error(key, "is longer than 200 bytes");
  if (name.front() == '.') return fields.error(key, "must not begin with a dot");
  for (const char c : name)
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return fields.error(key, "must not hold slashes or control characters");
  return {};
}

// The schema wants a top-level synchronous `def run`. Parsing Python is not this program's business; a line
// that begins with it is the part that catches mistakes.
bool has_top_level_run(std::string_view source) {
  size_t begin = 0;
  while (begin < source.size()) {
    size_t end = source.find('\n', begin);
    if (end == std::string_view::npos) end = source.size();
    std::string_view line = source.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("def ")) continue;
    line.remove_prefix(4);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (!line.starts_with("run")) continue;
    line.remove_prefix(3);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.starts_with('(')) return true;
  }
  return false;
}

Result<Axis> parse_axis(const std::string& name, const JsonFields& fields) {
  Axis axis;
  axis.name = name;
  FIXIT_ASSIGN_OR_RETURN(axis.description, fields.text_or("description", ""));
  // `type` has a default in the schema: what carries a value is const.
  FIXIT_ASSIGN_OR_RETURN(const std::string type,
                         fields.text_or("type", fields.has("value") ? "const" : "var"));
  if (type == "const") {
    FIXIT_ASSIGN_OR_RETURN(axis.value, fields.count("value"));
  } else if (type != "var") {
    return fields.error("type", "is `" + type + "`; accepted: const, var");
  }
  return axis;
}

Result<TensorSpec> parse_tensor(const std::string& name, const JsonFields& fields,
                                const Definition& definition) {
  TensorSpec tensor;
  tensor.name = name;
  FIXIT_ASSIGN_OR_RETURN(const Json* shape, fields.value("shape"));
  if (shape->is_null()) {
    tensor.scalar = true;
  } else {
    if (!shape->is_array())
      return fields.error("shape", "must be a list of axis names, or null for a scalar");
    if (shape->size() > kMaxRank) return fields.error("shape", "has more than 16 dimensions");
    FIXIT_ASSIGN_OR_RETURN(tensor.shape, fields.texts("shape"));
    for (const auto& axis : tensor.shape)
      if (definition.axis(axis) == nullptr)
        return fields.error("shape", "names axis `" + axis + "`, which `axes` lacks");
  }
  FIXIT_ASSIGN_OR_RETURN(const std::string dtype_name, fields.text("dtype"));
  const auto dtype = parse_enum<Dtype>(dtype_name);
  if (!dtype) {
    std::string accepted;
    for (const auto& [unused, known] : EnumNames<Dtype>::values)
      accepted += (accepted.empty() ? "" : ", ") + std::string(known);
    return fields.error("dtype", "is `" + dtype_name + "`; accepted: " + accepted);
  }
  tensor.dtype = *dtype;
  FIXIT_ASSIGN_OR_RETURN(tensor.description, fields.text_or("description", ""));
  return tensor;
}

Status parse_tensors(const JsonFields& top, const char* key, const Definition& definition,
                     std::vector<TensorSpec>& tensors) {
  FIXIT_ASSIGN_OR_RETURN(const JsonFields map, top.object(key));
  for (const auto& [name, json] : map.json().items()) {
    if (name.empty()) return top.error(key, "has an empty name");
    FIXIT_RETURN_IF_ERROR(check_name(map, name, name));
    FIXIT_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::of(json, map.where(), map.path_of(name)));
    FIXIT_ASSIGN_OR_RETURN(auto tensor, parse_tensor(name, fields, definition));
    tensors.push_back(std::move(tensor));
  }
  return {};
}

Json tensors_to_json(const std::vector<TensorSpec>& tensors) {
  Json map = Json::object();
  for (const auto& tensor : tensors) {
    Json entry = Json::object();
    entry["shape"] = tensor.scalar ? Json() : Json(tensor.shape);
    entry["dtype"] = name_of(tensor.dtype);
    if (!tensor.description.empty()) entry["description"] = tensor.description;
    map[tensor.name] = std::move(entry);
  }
  return map;
}

}  // namespace

int dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kInt64:
      return 8;
    case Dtype::kFloat32:
    case Dtype::kInt32:
      return 4;
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
    case Dtype::kInt16:
      return 2;
    case Dtype::kFloat8E4m3fn:
    case Dtype::kFloat8E5m2:
    case Dtype::kInt8:
    case Dtype::kBool:
      return 1;
    case Dtype::kFloat4E2m1:
      return 0;
  }
  return 0;
}

const Axis* Definition::axis(std::string_view axis_name) const {
  for (const auto& candidate : axes)
    if (candidate.name == axis_name) return &candidate;
  return nullptr;
}

std::vector<std::string> Definition::var_axes() const {
  std::vector<std::string> names;
  for (const auto& candidate : axes)
    if (!candidate.value) names.push_back(candidate.name);
  return names;
}

Result<Definition> parse_definition(std::string_view text, std::string_view where) {
  FIXIT_ASSIGN_OR_RETURN(const Json json, parse_json(text, where));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields top, JsonFields::of(json, where, ""));
  Definition definition;
  FIXIT_ASSIGN_OR_RETURN(definition.name, top.text("name"));
  FIXIT_RETURN_IF_ERROR(check_name(top, "name", definition.name));
  FIXIT_ASSIGN_OR_RETURN(definition.op_type, top.text("op_type"));
  FIXIT_ASSIGN_OR_RETURN(definition.description, top.text_or("description", ""));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields axes, top.object("axes"));
  for (const auto& [name, axis_json] : axes.json().items()) {
    if (name.empty()) return top.error("axes", "has an empty name");
    FIXIT_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::of(axis_json, where, axes.path_of(name)));
    FIXIT_ASSIGN_OR_RETURN(auto axis, parse_axis(name, fields));
    definition.axes.push_back(std::move(axis));
  }
  FIXIT_RETURN_IF_ERROR(parse_tensors(top, "inputs", definition, definition.inputs));
  FIXIT_RETURN_IF_ERROR(parse_tensors(top, "outputs", definition, definition.outputs));
  for (const auto& output : definition.outputs) {
    const auto same = [&](const TensorSpec& input) { return input.name == output.name; };
    if (std::any_of(definition.inputs.begin(), definition.inputs.end(), same))
      return top.error("outputs", "`" + output.name + "` is also the name of an input");
  }
  FIXIT_ASSIGN_OR_RETURN(definition.reference, top.text("reference"));
  if (!has_top_level_run(definition.reference))
    return top.error("reference", "must be Python source with a top-level `def run(...)`");
  FIXIT_ASSIGN_OR_RETURN(definition.tags, top.texts("tags"));
  FIXIT_ASSIGN_OR_RETURN(definition.constraints, top.texts("constraints"));
  return definition;
}

std::string write_definition(const Definition& definition) {
  Json json = Json::object();
  json["name"] = definition.name;
  json["op_type"] = definition.op_type;
  if (!definition.description.empty()) json["description"] = definition.description;
  json["tags"] = definition.tags;
  json["axes"] = Json::object();
  for (const auto& axis : definition.axes) {
    Json entry = Json::object();
    entry["type"] = axis.value ? "const" : "var";
    if (axis.value) entry["value"] = *axis.value;
    if (!axis.description.empty()) entry["description"] = axis.description;
    json["axes"][axis.name] = std::move(entry);
  }
  if (!definition.constraints.empty()) json["constraints"] = definition.constraints;
  json["inputs"] = tensors_to_json(definition.inputs);
  json["outputs"] = tensors_to_json(definition.outputs);
  json["reference"] = definition.reference;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fixit

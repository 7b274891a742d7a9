#include <filesystem>
#include <limits>

#include "core/trace/definition.h"
#include "core/trace/json_fields.h"
#include "core/trace/workload_json.h"

namespace fixit {
namespace {

// More than any machine holds; keeps products of axes far from overflow.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;

Result<StoredTensor> parse_stored(const JsonFields& fields) {
  StoredTensor stored;
  FIXIT_ASSIGN_OR_RETURN(stored.path, fields.text("path"));
  FIXIT_ASSIGN_OR_RETURN(stored.tensor_key, fields.text("tensor_key"));
  return stored;
}

Result<ScalarInput> parse_scalar(const JsonFields& fields) {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, fields.value("value"));
  if (json->is_boolean()) return ScalarInput{json->get<bool>()};
  if (json->is_number_float()) return ScalarInput{json->get<double>()};
  if (const auto integer = lenient_integer(*json)) return ScalarInput{*integer};
  return fields.error("value", "must be a number (whole ones within 64 bits), true or false");
}

Result<WorkloadInput> parse_input(const JsonFields& fields) {
  FIXIT_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
  if (type == "random") return WorkloadInput(RandomInput{});
  if (type == "scalar") {
    FIXIT_ASSIGN_OR_RETURN(const ScalarInput scalar, parse_scalar(fields));
    return WorkloadInput(scalar);
  }
  if (type == "safetensors") {
    FIXIT_ASSIGN_OR_RETURN(StoredTensor stored, parse_stored(fields));
    return WorkloadInput(std::move(stored));
  }
  return fields.error("type", "is `" + type + "`; accepted: random, scalar, safetensors");
}

Json stored_to_json(const StoredTensor& stored) {
  return Json{{"type", "safetensors"}, {"path", stored.path}, {"tensor_key", stored.tensor_key}};
}

Json input_to_json(const WorkloadInput& input) {
  if (const auto* stored = std::get_if<StoredTensor>(&input)) return stored_to_json(*stored);
  if (const auto* scalar = std::get_if<ScalarInput>(&input)) {
    Json json{{"type", "scalar"}};
    std::visit([&](auto value) { json["value"] = value; }, scalar->value);
    return json;
  }
  return Json{{"type", "random"}};
}

Status invalid(std::string_view where, const std::string& field, const std::string& what) {
  return Status(ErrorCode::kInvalid, std::string(where) + ": " + field + ": " + what);
}

Status check_stored_path(std::string_view where, const std::string& field, const StoredTensor& stored) {
  const std::filesystem::path path(stored.path);
  bool climbs = path.is_absolute();
  for (const auto& step : path) climbs = climbs || step == "..";
  if (climbs) return invalid(where, field + ".path", "`" + stored.path + "` leaves the trace set's folder");
  return {};
}

Status check_scalar(std::string_view where, const TensorSpec& spec, const ScalarInput& scalar) {
  const std::string field = "inputs." + spec.name;
  const bool is_bool = std::holds_alternative<bool>(scalar.value);
  if (is_bool != (spec.dtype == Dtype::kBool))
    return invalid(where, field, "has a value that is not of dtype " + std::string(name_of(spec.dtype)));
  int64_t limit = 0;
  switch (spec.dtype) {
    case Dtype::kInt64:
      limit = std::numeric_limits<int64_t>::max();
      break;
    case Dtype::kInt32:
      limit = std::numeric_limits<int32_t>::max();
      break;
    case Dtype::kInt16:
      limit = std::numeric_limits<int16_t>::max();
      break;
    case Dtype::kInt8:
      limit = std::numeric_limits<int8_t>::max();
      break;
    default:
      return {};  // floats take whole numbers too
  }
  const auto* integer = std::get_if<int64_t>(&scalar.value);
  if (integer == nullptr || *integer > limit || *integer < -limit - 1)
    return invalid(where, field, "has a value that is not of dtype " + std::string(name_of(spec.dtype)));
  return {};
}

Status check_input(std::string_view where, const TensorSpec& spec, const Workload& workload) {
  const auto found = workload.inputs.find(spec.name);
  const std::string field = "inputs." + spec.name;
  const bool random = found == workload.inputs.end() || std::holds_alternative<RandomInput>(found->second);
  if (random) {
    if (spec.scalar)
      return invalid(where, field, "is a scalar and needs a value: {\"type\": \"scalar\", \"value\": ...}");
    return {};
  }
  if (const auto* stored = std::get_if<StoredTensor>(&found->second)) {
    if (spec.scalar) return invalid(where, field, "is a scalar; a stored tensor cannot give its value");
    return check_stored_path(where, field, *stored);
  }
  if (!spec.scalar) return invalid(where, field, "is a tensor; a scalar value cannot fill it");
  return check_scalar(where, spec, std::get<ScalarInput>(found->second));
}

Status check_size(std::string_view where, const Definition& definition, const TensorSpec& spec,
                  const Workload& workload) {
  FIXIT_ASSIGN_OR_RETURN(const auto shape, resolve_shape(definition, spec, workload));
  int64_t bytes = std::max(1, dtype_bytes(spec.dtype));
  for (const int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxTensorBytes)
      return invalid(where, spec.name, "would have more than 64 TiB");
  return {};
}

}  // namespace

Result<Workload> workload_from_json(const Json& json, std::string_view where, std::string_view path) {
  FIXIT_ASSIGN_OR_RETURN(const JsonFields top, JsonFields::of(json, where, path));
  Workload workload;
  FIXIT_ASSIGN_OR_RETURN(workload.uuid, top.text("uuid"));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields axes, top.object("axes"));
  for (const auto& item : axes.json().items()) {
    FIXIT_ASSIGN_OR_RETURN(const int64_t value, axes.count(item.key().c_str()));
    workload.axes.emplace_back(item.key(), value);
  }
  FIXIT_ASSIGN_OR_RETURN(const JsonFields inputs, top.object("inputs"));
  for (const auto& [name, input_json] : inputs.json().items()) {
    FIXIT_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::of(input_json, where, inputs.path_of(name)));
    FIXIT_ASSIGN_OR_RETURN(auto input, parse_input(fields));
    workload.inputs.emplace(name, std::move(input));
  }
  if (!top.has("outputs") || top.is_null("outputs")) return workload;
  FIXIT_ASSIGN_OR_RETURN(const JsonFields outputs, top.object("outputs"));
  for (const auto& [name, output_json] : outputs.json().items()) {
    FIXIT_ASSIGN_OR_RETURN(const JsonFields fields,
                           JsonFields::of(output_json, where, outputs.path_of(name)));
    FIXIT_ASSIGN_OR_RETURN(const std::string type, fields.text_or("type", "safetensors"));
    if (type != "safetensors") return fields.error("type", "is `" + type + "`; accepted: safetensors");
    FIXIT_ASSIGN_OR_RETURN(auto stored, parse_stored(fields));
    workload.outputs.emplace(name, std::move(stored));
  }
  return workload;
}

Result<WorkloadLine> parse_workload_line(std::string_view text, std::string_view where) {
  FIXIT_ASSIGN_OR_RETURN(Json json, parse_json(text, where));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields top, JsonFields::of(json, where, ""));
  WorkloadLine line;
  if (top.has("workload")) {
    FIXIT_ASSIGN_OR_RETURN(line.definition, top.text("definition"));
    for (const char* key : {"solution", "evaluation"})
      if (top.has(key) && !top.is_null(key))
        return top.error(key, "must be null: this is a trace, and workload files hold workloads only");
    FIXIT_ASSIGN_OR_RETURN(line.workload, workload_from_json(json["workload"], where, "workload"));
    line.json = json["workload"].dump(-1, ' ', false, Json::error_handler_t::replace);
    return line;
  }
  FIXIT_ASSIGN_OR_RETURN(line.workload, workload_from_json(json, where, ""));
  line.json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return line;
}

Result<Workload> parse_workload(std::string_view text, std::string_view where) {
  FIXIT_ASSIGN_OR_RETURN(auto line, parse_workload_line(text, where));
  return std::move(line.workload);
}

std::string write_workload(const Workload& workload) {
  Json json = Json::object();
  json["uuid"] = workload.uuid;
  json["axes"] = Json::object();
  for (const auto& [name, value] : workload.axes) json["axes"][name] = value;
  json["inputs"] = Json::object();
  for (const auto& [name, input] : workload.inputs) json["inputs"][name] = input_to_json(input);
  if (!workload.outputs.empty()) json["outputs"] = Json::object();
  for (const auto& [name, stored] : workload.outputs) json["outputs"][name] = stored_to_json(stored);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status check_workload(const Definition& definition, const Workload& workload, std::string_view where) {
  for (const auto& axis : definition.axes) {
    std::optional<int64_t> value = axis.value;
    for (const auto& [name, given] : workload.axes)
      if (!value && name == axis.name) value = given;
    if (!value)
      return invalid(where, "axes." + axis.name,
                     "is missing; `" + definition.name + "` has it as a var axis");
    if (*value <= 0) return invalid(where, "axes." + axis.name, "must be at least 1");
  }
  for (const auto& [name, unused] : workload.inputs) {
    bool known = false;
    for (const auto& spec : definition.inputs) known = known || spec.name == name;
    if (!known) return invalid(where, "inputs." + name, "is not an input of `" + definition.name + "`");
  }
  for (const auto& spec : definition.inputs) FIXIT_RETURN_IF_ERROR(check_input(where, spec, workload));
  for (const auto& [name, stored] : workload.outputs) {
    bool known = false;
    for (const auto& spec : definition.outputs) known = known || spec.name == name;
    if (!known) return invalid(where, "outputs." + name, "is not an output of `" + definition.name + "`");
    FIXIT_RETURN_IF_ERROR(check_stored_path(where, "outputs." + name, stored));
  }
  for (const auto* tensors : {&definition.inputs, &definition.outputs})
    for (const auto& spec : *tensors) FIXIT_RETURN_IF_ERROR(check_size(where, definition, spec, workload));
  return {};
}

Result<std::vector<int64_t>> resolve_shape(const Definition& definition, const TensorSpec& tensor,
                                           const Workload& workload) {
  std::vector<int64_t> shape;
  for (const auto& name : tensor.shape) {
    const Axis* axis = definition.axis(name);
    if (axis == nullptr)
      return Status(ErrorCode::kInvalid,
                    definition.name + ": tensor " + tensor.name + ": unknown axis " + name);
    std::optional<int64_t> value = axis->value;
    for (const auto& [given, extent] : workload.axes)
      if (!value && given == name) value = extent;
    if (!value)
      return Status(ErrorCode::kInvalid,
                    definition.name + ": workload " + workload.uuid + " gives no value for axis " + name);
    shape.push_back(*value);
  }
  return shape;
}

std::vector<int64_t> var_axis_values(const Definition& definition, const Workload& workload) {
  std::vector<int64_t> values;
  for (const auto& name : definition.var_axes())
    for (const auto& [given, extent] : workload.axes)
      if (given == name) {
        values.push_back(extent);
        break;
      }
  return values;
}

}  // namespace fixit

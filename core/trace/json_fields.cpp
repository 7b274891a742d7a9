#include "core/trace/json_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace fixit {

std::optional<int64_t> lenient_integer(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<uint64_t>();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) {
    const double value = json.get<double>();
    if (value != std::floor(value) || std::abs(value) > 9e15) return std::nullopt;
    return static_cast<int64_t>(value);
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  return std::nullopt;
}

Result<JsonFields> JsonFields::of(const Json& json, std::string_view where, std::string_view path) {
  const JsonFields fields(json, where, path);
  if (json.is_object()) return fields;
  std::string message(where);
  if (!path.empty()) message += ": " + std::string(path);
  return Status(ErrorCode::kInvalid, message + ": is " + json.type_name() + ", must be an object");
}

std::string JsonFields::path_of(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

Status JsonFields::error(std::string_view key, std::string_view what) const {
  return Status(ErrorCode::kInvalid, where_ + ": " + path_of(key) + ": " + std::string(what));
}

Result<const Json*> JsonFields::value(const char* key) const {
  const auto found = json_->find(key);
  if (found == json_->end()) return error(key, "is missing");
  return &*found;
}

Result<JsonFields> JsonFields::object(const char* key) const {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, value(key));
  return of(*json, where_, path_of(key));
}

Result<const Json*> JsonFields::array(const char* key) const {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, value(key));
  if (!json->is_array()) return error(key, std::string("is ") + json->type_name() + ", must be a list");
  return json;
}

Result<std::string> JsonFields::text(const char* key) const {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, value(key));
  if (!json->is_string()) return error(key, std::string("is ") + json->type_name() + ", must be a text");
  auto result = json->get<std::string>();
  if (result.empty()) return error(key, "is empty");
  return result;
}

Result<std::string> JsonFields::text_or(const char* key, std::string_view absent) const {
  if (!has(key) || is_null(key)) return std::string(absent);
  const Json& json = (*json_)[key];
  if (!json.is_string())
    return error(key, std::string("is ") + json.type_name() + ", must be a text or null");
  return json.get<std::string>();
}

Result<bool> JsonFields::flag_or(const char* key, bool absent) const {
  if (!has(key)) return absent;
  const Json& json = (*json_)[key];
  if (!json.is_boolean())
    return error(key, std::string("is ") + json.type_name() + ", must be true or false");
  return json.get<bool>();
}

Result<int64_t> JsonFields::count(const char* key) const {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, value(key));
  const auto number = lenient_integer(*json);
  if (!number || *number < 0) return error(key, "must be a whole number, 0 or more");
  return *number;
}

Result<double> JsonFields::number(const char* key) const {
  FIXIT_ASSIGN_OR_RETURN(const Json* json, value(key));
  if (json->is_number()) return json->get<double>();
  if (json->is_string()) {
    auto text = json->get<std::string>();
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "infinity" || text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return error(key, "must be a number, \"NaN\" or \"Infinity\"");
}

Result<std::vector<std::string>> JsonFields::texts(const char* key) const {
  std::vector<std::string> result;
  if (!has(key)) return result;
  FIXIT_ASSIGN_OR_RETURN(const Json* list, array(key));
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& item = (*list)[i];
    if (!item.is_string() || item.get_ref<const std::string&>().empty())
      return error(std::string(key) + "[" + std::to_string(i) + "]", "must be a text that is not empty");
    result.push_back(item.get<std::string>());
  }
  return result;
}

}  // namespace fixit

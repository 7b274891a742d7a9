// Reads the fields of one JSON object of untrusted origin; every error names the document and the field.
// Private to core/trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/codec.h"
#include "core/base/status.h"

namespace fixit {

class JsonFields {
 public:
  // `where` names the document ("x.jsonl:3"), `path` the object inside it ("axes.M"; empty at the top).
  // kInvalid if `json` is not an object. Keeps a reference to `json`.
  static Result<JsonFields> of(const Json& json, std::string_view where, std::string_view path);

  const Json& json() const { return *json_; }
  bool has(const char* key) const { return json_->contains(key); }
  bool is_null(const char* key) const { return has(key) && (*json_)[key].is_null(); }

  Result<const Json*> value(const char* key) const;                             // present, of any type
  Result<JsonFields> object(const char* key) const;                             // present
  Result<const Json*> array(const char* key) const;                             // present
  Result<std::string> text(const char* key) const;                              // present and not empty
  Result<std::string> text_or(const char* key, std::string_view absent) const;  // null counts as absent
  Result<bool> flag_or(const char* key, bool absent) const;
  // Not negative. As the schema's readers do, 4.0 and "4" count as 4.
  Result<int64_t> count(const char* key) const;
  // Present, a number; "NaN", "Infinity", "-Infinity" in any case as the format's files have them.
  Result<double> number(const char* key) const;
  // List of non-empty texts; absent: empty. null is refused.
  Result<std::vector<std::string>> texts(const char* key) const;

  // "where: path.key: what"
  Status error(std::string_view key, std::string_view what) const;
  std::string path_of(std::string_view key) const;
  const std::string& where() const { return where_; }

 private:
  JsonFields(const Json& json, std::string_view where, std::string_view path)
      : json_(&json), where_(where), path_(path) {}

  const Json* json_;
  std::string where_;
  std::string path_;
};

// A whole number as the schema's lenient readers take it; nothing for other values.
std::optional<int64_t> lenient_integer(const Json& json);

}  // namespace fixit

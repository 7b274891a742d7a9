// Reads typed keys out of a YAML mapping. All faults of a file are collected, each as
// "file:line: key: what; accepted: ...; did you mean X?", so that a user mends them in one go.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/status.h"
#include "core/config/yaml_document.h"

namespace fixit {

// The name of `known` nearest to `wrong` by edit distance; empty where none is near.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known);

class YamlFaults {
 public:
  explicit YamlFaults(std::string file) : file_(std::move(file)) {}
  void add(int line, std::string_view key, std::string_view what);
  bool any() const { return count_ > 0; }
  Status status() const;  // kInvalid with the first 20 faults, one a line; ok if none

 private:
  std::string file_;
  std::string text_;
  int count_ = 0;
};

// A number's accepted range, ends included unless `above`.
struct Range {
  double least;
  double most;
  bool above = false;  // greater than `least`
};

// A text's accepted form; its content is never echoed in messages where `secret`.
struct TextRule {
  bool may_be_empty = false;
  bool secret = false;
  size_t most_bytes = 4096;
};

class YamlMap {
 public:
  // A node that is not a mapping is a fault, and then every key is absent. Keeps references to both.
  YamlMap(YamlFaults& faults, const YamlNode& node, std::string path);
  YamlMap(const YamlMap&) = delete;
  YamlMap& operator=(const YamlMap&) = delete;

  // Each takes a key: absent keys leave `out` alone; true if `out` was set.
  bool text(std::string_view key, std::string& out, const TextRule& rule = {});
  bool flag(std::string_view key, bool& out);
  bool integer(std::string_view key, int64_t& out, int64_t least, int64_t most);
  bool integer(std::string_view key, int& out, int least, int most);
  bool number(std::string_view key, double& out, const Range& range);
  bool choice(std::string_view key, std::string& out, const std::vector<std::string>& accepted);
  // A list of texts; a single text counts as a list of one.
  bool texts(std::string_view key, std::vector<std::string>& out);
  template <NamedEnum E>
  bool name(std::string_view key, E& out) {
    std::vector<std::string> accepted;
    for (const auto& [unused, known] : EnumNames<E>::values) accepted.emplace_back(known);
    std::string picked;
    if (!choice(key, picked, accepted)) return false;
    out = *parse_enum<E>(picked);
    return true;
  }
  // The key's value as it is; null if absent or empty.
  const YamlNode* value(std::string_view key);

  bool has(std::string_view key) const { return entries_.contains(std::string(key)); }
  int line_of(std::string_view key) const;  // the mapping's own where the key is absent
  void require(std::string_view key, std::string_view accepted);
  void fault(std::string_view key, std::string_view what) { faults_.add(line_of(key), path_of(key), what); }
  std::string path_of(std::string_view key) const;
  YamlFaults& faults() { return faults_; }

  // What was never asked for is unknown. Call once, after the last key; `absent` are keys with a message of
  // their own in the place of a suggestion.
  void finish(const std::map<std::string, std::string>& absent = {});

 private:
  const YamlNode* scalar(std::string_view key, std::string_view accepted);

  YamlFaults& faults_;
  std::string path_;
  int line_;
  std::map<std::string, std::pair<int, const YamlNode*>> entries_;
  std::vector<std::string> asked_;
};

// A list's texts into `out`, faults named `path`[i]; `lines`, if given, gets a line per text.
void read_texts(YamlFaults& faults, const YamlNode& node, const std::string& path,
                std::vector<std::string>& out, std::map<std::string, int>* lines = nullptr);

}  // namespace fixit

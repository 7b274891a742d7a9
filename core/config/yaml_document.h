// One YAML document of untrusted origin as a plain tree that knows its lines. Built from yaml-cpp's events,
// not from its nodes: so that duplicate keys are seen, and aliases cannot expand without end.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace fixit {

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;         // 1-based
  std::string text;     // of a scalar
  bool quoted = false;  // a quoted scalar is a text, whatever it looks like
  std::vector<std::shared_ptr<const YamlNode>> items;
  std::vector<std::pair<std::shared_ptr<const YamlNode>, std::shared_ptr<const YamlNode>>>
      entries;          // in order
  size_t expanded = 1;  // nodes below and including this one, aliases written out

  std::string_view kind_name() const;  // "a list", for messages
};

// Exactly one document, UTF-8 (a byte order mark and CRLF are fine), at most 1 MiB, 100,000 nodes with
// aliases written out, 64 levels. kInvalid with `file`:line. `first_line`
// is the number of the first line of `text` in the file.
Result<std::shared_ptr<const YamlNode>> parse_yaml(std::string_view text, std::string_view file,
                                                   int first_line = 1);
Result<std::shared_ptr<const YamlNode>> load_yaml(const std::filesystem::path& file);

}  // namespace fixit

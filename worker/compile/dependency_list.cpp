#include "worker/compile/dependency_list.h"

namespace fixit {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

Result<std::vector<std::string>> parse_dependency_list(std::string_view text) {
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos || text.substr(0, colon).find('\n') != std::string_view::npos)
    return Status(ErrorCode::kCorrupt, "dependency list: it does not begin with `target: `");
  std::vector<std::string> files;
  std::string file;
  const auto finish = [&] {
    if (!file.empty()) files.push_back(std::move(file));
    file.clear();
  };
  for (size_t i = colon + 2; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\\' && next == '\n') {
      finish();
      ++i;
    } else if ((c == '\\' && (is_blank(next) || next == '#' || next == '\\' || next == ':')) ||
               (c == '$' && next == '$')) {
      file += next;
      ++i;
    } else if (is_blank(c)) {
      finish();
    } else if (c == '\n') {
      finish();
      if (text.find_first_not_of("\n", i) != std::string_view::npos)
        return Status(ErrorCode::kCorrupt, "dependency list: there is more than one rule");
      break;
    } else {
      file += c;
    }
  }
  finish();
  return files;
}

}  // namespace fixit

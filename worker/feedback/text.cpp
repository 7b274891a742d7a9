#include "worker/feedback/text.h"

#include <algorithm>

namespace fixit {

size_t utf8_boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  const size_t lowest = at > 3 ? at - 3 : 0;  // a character has at most four bytes; more are not UTF-8
  for (size_t i = at; i > lowest; --i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return i;
  return at;
}

std::string clip(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  constexpr std::string_view kMark = "...";
  if (limit <= kMark.size()) return std::string(kMark.substr(0, limit));
  std::string result(text.substr(0, utf8_boundary(text, limit - kMark.size())));
  return result.append(kMark);
}

}  // namespace fixit

#include "worker/llm/sse.h"

#include <algorithm>

namespace fixit {

bool SseParser::feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data) {
  while (!bytes.empty() && !too_long_) {
    if (after_cr_ && bytes.front() == '\n') {
      after_cr_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_cr_ = false;
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + end > limit_) {
      too_long_ = true;
      break;
    }
    line_.append(bytes.substr(0, end));
    if (end == bytes.size()) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(on_data);
  }
  return !too_long_;
}

void SseParser::end_line(const std::function<void(std::string_view)>& on_data) {
  std::string_view line = line_;
  if (first_line_ && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    if (has_data_) on_data(data_);
    data_.clear();
    has_data_ = false;
  } else if (line == "data" || line.starts_with("data:")) {
    line.remove_prefix(std::min<size_t>(5, line.size()));
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (data_.size() + line.size() + 1 > limit_) {
      too_long_ = true;
    } else {
      if (has_data_) data_.push_back('\n');
      data_.append(line);
      has_data_ = true;
    }
  }
  line_.clear();
}

}  // namespace fixit

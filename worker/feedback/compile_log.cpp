#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "worker/feedback/feedback.h"
#include "worker/feedback/text.h"

namespace fixit {
namespace {

constexpr size_t kLineLimit = 400;  // a template's name alone can fill a screen
constexpr size_t kLinesBefore = 2;  // "In function ...", "In instantiation of ..."
constexpr size_t kLinesAfter = 3;   // the source line, its marks, the first note
constexpr size_t kLabels = 256;     // what the headings of the parts take at most

bool is_error(std::string_view line) {
  static constexpr std::array<std::string_view, 6> kMarks = {
      "error:", "error :", "fatal error", "undefined reference", "undefined symbol", "ptxas fatal"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [line](std::string_view mark) { return line.find(mark) != std::string_view::npos; });
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Error lines with their context, in order, each line once, as many whole lines as fit.
std::string error_lines(std::string_view log, size_t limit) {
  const std::vector<std::string_view> lines = lines_of(log);
  std::string out;
  size_t next = 0;  // first line not shown yet
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_error(lines[i])) continue;
    const size_t begin = std::max(next, i - std::min(i, kLinesBefore));
    const size_t end = std::min(lines.size(), i + kLinesAfter + 1);
    for (size_t k = begin; k < end; ++k) {
      const std::string line = clip(lines[k], kLineLimit);
      if (out.size() + line.size() + 1 > limit) return out;
      out.append(line).push_back('\n');
    }
    next = std::max(next, end);
  }
  return out;
}

}  // namespace

std::string excerpt_compile_log(const std::string& log, size_t limit) {
  if (log.size() <= limit) return log;
  if (limit <= 2 * kLabels) return clip(log, limit);
  const std::string_view text = log;
  const size_t room = limit - kLabels;
  const std::string errors = error_lines(text, room * 3 / 5);
  const size_t each = (room - errors.size()) / 2;
  const std::string_view head = text.substr(0, utf8_boundary(text, each));
  const std::string_view tail =
      text.substr(utf8_boundary(text, text.size() - each + std::min<size_t>(each, 4)));
  std::string out;
  if (!errors.empty()) out += "Errors, with the lines around them:\n" + errors + "\n";
  out += fmt::format("Beginning of the output ({} bytes in all):\n{}\n", log.size(), head);
  out += fmt::format("[{} bytes between beginning and end are left out]\n{}",
                     log.size() - head.size() - tail.size(), tail);
  return clip(out, limit);
}

}  // namespace fixit

#include "core/config/file_names.h"

#include <algorithm>

#include "core/config/config_files.h"

namespace fixit {
namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > 100 || name.find("..") != std::string_view::npos) return false;
  const auto alphanumeric = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c); };
  const auto accepted = [&](char c) {
    return alphanumeric(c) || c == '.' || c == '_' || c == '-' || c == '+';
  };
  return alphanumeric(name.front()) && std::all_of(name.begin(), name.end(), accepted);
}

bool is_sweep_name(std::string_view name) {
  if (!is_plain_name(name) || name.size() > 64) return false;
  return std::none_of(name.begin(), name.end(), [](char c) { return is_upper(c) || c == '+'; });
}

bool is_variable_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || is_digit(name.front())) return false;
  // Identifiers of AWS keys are upper case too.
  if (name.size() == 20 && (name.starts_with("AKIA") || name.starts_with("ASIA"))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

bool name_matches(std::string_view pattern, std::string_view name) {
  // Greedy with one point of return: linear in practice, never exponential.
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace fixit

#include "worker/extract/entry_point.h"

#include <string>
#include <vector>

namespace fixit {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

// The position after a literal that begins at `at`, which holds its quote.
size_t skip_quoted(std::string_view text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      return at + 1;
    }
  }
  return std::min(at, text.size());
}

// The position after a raw string whose quote is at `at`: R"delimiter( ... )delimiter".
size_t skip_raw_string(std::string_view text, size_t at) {
  constexpr size_t kLongestDelimiter = 16;  // the language's limit
  const std::string_view head = text.substr(at + 1, kLongestDelimiter + 1);
  const size_t open = head.find('(');
  if (open == std::string_view::npos) return at + 1;
  const std::string close = ")" + std::string(head.substr(0, open)) + "\"";
  const size_t end = text.find(close, at + 1 + open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

bool is_raw_prefix(std::string_view word) {
  return word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
}

// Follows words and brackets; a parameter list remembers whether the wanted name stood before it.
class DefinitionFinder {
 public:
  DefinitionFinder(std::string_view source, std::string_view name) : text_(source), name_(name) {}

  bool found() {
    while (at_ < text_.size())
      if (step()) return true;
    return false;
  }

 private:
  bool step() {
    const char c = text_[at_];
    if (is_space(c)) {
      ++at_;
    } else if (text_.compare(at_, 2, "//") == 0) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.compare(at_, 2, "/*") == 0) {
      const size_t end = text_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
    } else if (c == '"' || c == '\'') {
      at_ = c == '"' && is_raw_prefix(word_) ? skip_raw_string(text_, at_) : skip_quoted(text_, at_);
      word_ = {};
    } else if (is_word(c)) {
      take_word();
    } else {
      return take_sign(c);
    }
    return false;
  }

  void take_word() {
    const size_t begin = at_;
    // 1'000'000: a quote between digits is part of the number
    const bool number = text_[at_] >= '0' && text_[at_] <= '9';
    while (at_ < text_.size() && (is_word(text_[at_]) || (number && text_[at_] == '\''))) ++at_;
    word_ = text_.substr(begin, at_ - begin);
    if (word_ != "noexcept" && word_ != "const") closed_ = false;
  }

  bool take_sign(char c) {
    ++at_;
    if (c == '(') {
      lists_.push_back(word_ == name_);
      closed_ = false;
    } else if (c == ')' && !lists_.empty()) {
      closed_ = lists_.back();
      lists_.pop_back();
    } else if (c == '{') {
      if (closed_) return true;
    } else {
      closed_ = false;
    }
    word_ = {};
    return false;
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
  std::string_view word_;    // the last word, until a sign follows it
  std::vector<bool> lists_;  // open parentheses: does the wanted name stand before it
  bool closed_ = false;      // such a list was closed just now
};

}  // namespace

bool defines_function(std::string_view source, std::string_view name) {
  return !name.empty() && DefinitionFinder(source, name).found();
}

}  // namespace fixit

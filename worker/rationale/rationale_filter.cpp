#include "worker/rationale/rationale_filter.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "worker/extract/entry_point.h"
#include "worker/extract/fenced_blocks.h"

namespace fixit {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Lower case, every run of white space one blank, so that a phrase is found across a line break.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool space = kSpace.find(c) != std::string_view::npos;
    if (!space) {
      out.push_back(lower(c));
    } else if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  }
  return out;
}

bool contains_words(std::string_view text, std::string_view phrase) {
  for (size_t at = text.find(phrase); at != std::string_view::npos; at = text.find(phrase, at + 1)) {
    const size_t end = at + phrase.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// The last <rationale> in the reply: thinking before it may mention the tag. Without its end: all that
// follows.
std::string_view rationale_proper(std::string_view reply) {
  constexpr std::string_view kOpen = "<rationale>";
  const size_t open = reply.rfind(kOpen);
  if (open == std::string_view::npos) return trimmed(reply);
  reply.remove_prefix(open + kOpen.size());
  return trimmed(reply.substr(0, reply.find("</rationale>")));
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

bool mentions_repair(std::string_view folded_text) {
  static constexpr std::string_view kPhrases[] = {
      "the repaired kernel",   "the repaired code",    "the repaired version",
      "the repaired source",   "the fixed kernel",     "the fixed code",
      "the fixed version",     "the corrected kernel", "the corrected code",
      "the corrected version", "the correct solution", "the mended kernel",
      "the working kernel",    "the working version",  "the final kernel",
      "the provided solution", "the given solution",   "the expert",
      "the experts",           "the expert's",         "the teacher",
      "the teacher's",         "repaired kernel"};
  return std::any_of(std::begin(kPhrases), std::end(kPhrases),
                     [folded_text](std::string_view phrase) { return contains_words(folded_text, phrase); });
}

bool has_thinking_tags(std::string_view folded_text) {
  static constexpr std::array<std::string_view, 6> kTags = {"<think>",     "</think>",    "<thinking>",
                                                            "</thinking>", "<reasoning>", "</reasoning>"};
  return std::any_of(kTags.begin(), kTags.end(), [folded_text](std::string_view tag) {
    return folded_text.find(tag) != std::string_view::npos;
  });
}

// A whole kernel; single lines and fragments may be quoted.
bool has_kernel(std::string_view text) {
  constexpr std::string_view kEntryPoint = "run";
  if (defines_function(text, kEntryPoint)) return true;
  const auto blocks = fenced_blocks(text);
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const FencedBlock& block) { return defines_function(block.content, kEntryPoint); });
}

// Letters of other scripts against Latin ones without marks. Three in ten already make the text another
// language's, because a Chinese or Japanese letter stands for a syllable or word.
bool is_other_language(std::string_view text) {
  int64_t ascii = 0;
  int64_t other = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((lower(text[i]) >= 'a' && lower(text[i]) <= 'z')) ++ascii;
    if (c >= 0xC3 && c <= 0xDF) ++other;  // two bytes: Latin, Greek, Cyrillic, Arabic ...
    if (c == 0xE0 || c == 0xE1 || (c >= 0xE4 && c <= 0xED))
      ++other;  // three bytes, without signs and arrows (E2)
    if (c == 0xE3 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) > 0x80) ++other;  // kana
  }
  return other * 10 > (ascii + other) * 3;
}

std::string broken_rule(std::string_view text, const RationaleStage& limits) {
  const int64_t length = characters(text);
  if (text.empty() || length < limits.min_chars) return "too_short";
  if (length > limits.max_chars) return "too_long";
  const std::string plain = folded(text);
  for (const std::string& phrase : limits.forbidden) {
    const std::string wanted = folded(trimmed(phrase));
    if (!wanted.empty() && plain.find(wanted) != std::string::npos) return "forbidden_phrase:" + phrase;
  }
  if (mentions_repair(plain)) return "mentions_repair";
  if (has_thinking_tags(plain)) return "thinking_tags";
  if (has_kernel(text)) return "code_block";
  if (is_other_language(text)) return "language";
  return "";
}

}  // namespace

RationaleCheck check_rationale(const std::string& reply, const RationaleStage& limits) {
  RationaleCheck check;
  check.text = std::string(rationale_proper(reply));
  check.rule = broken_rule(check.text, limits);
  check.accepted = check.rule.empty();
  return check;
}

}  // namespace fixit

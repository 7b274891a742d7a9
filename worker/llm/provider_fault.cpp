#include "worker/llm/provider_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace fixit {
namespace {

bool is_about_context(const ProviderError& error) {
  static constexpr std::string_view kWords[] = {
      "context length",      "context_length",       "context window",
      "prompt is too long",  "input is too long",    "too many tokens",
      "token count exceeds", "maximum input length", "max_model_len"};
  std::string text = error.code + " " + error.message;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&text](std::string_view words) { return text.find(words) != std::string::npos; });
}

bool is_transient(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

}  // namespace

TurnStatus classify_fault(int http_status, const ProviderError& error) {
  const bool inside = http_status == 200;
  const int status = inside && error.status > 0 ? error.status : http_status;
  const bool size = status == 400 || status == 413 || status == 422 || (inside && error.status == 0);
  if (error.code == "context_length_exceeded" || (size && is_about_context(error)))
    return TurnStatus::kContextExhausted;
  if (is_transient(status) || (inside && error.status == 0)) return TurnStatus::kLlmTransient;
  return TurnStatus::kLlmFatal;
}

std::string redact(std::string text, const std::string& key) {
  constexpr std::string_view kShown = "[key]";
  if (key.empty()) return text;
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + kShown.size()))
    text.replace(at, key.size(), kShown);
  return text;
}

std::string describe_fault(int http_status, const ProviderError& error, const std::string& key) {
  constexpr size_t kLimit = 400;
  std::string text = redact(error.message, key);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  if (text.size() > kLimit) {
    size_t end = kLimit - 3;
    while (end > kLimit - 7 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  const std::string code = redact(error.code, key).substr(0, 100);
  std::string result =
      http_status == 200 ? "an error inside the answer" : fmt::format("HTTP {}", http_status);
  if (error.status > 0 && http_status == 200) result += fmt::format(" ({})", error.status);
  if (!code.empty()) result += fmt::format(" ({})", code);
  return text.empty() ? result : result + ": " + text;
}

int64_t retry_delay_ms(int next_attempt, std::optional<int64_t> retry_after_ms, double uniform) {
  constexpr int64_t kBase = 500;
  constexpr int64_t kCap = 60'000;
  constexpr int64_t kSpread = 500;  // so that many waiting calls do not come back in one instant
  if (retry_after_ms) return *retry_after_ms + static_cast<int64_t>(uniform * kSpread);
  const int doublings = std::clamp(next_attempt - 2, 0, 20);
  return static_cast<int64_t>(uniform * static_cast<double>(std::min(kCap, kBase << doublings)));
}

}  // namespace fixit

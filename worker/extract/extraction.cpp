#include "worker/extract/extraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "worker/extract/entry_point.h"
#include "worker/extract/fenced_blocks.h"

namespace fixit {
namespace {

bool is_kernel_tag(std::string_view tag) {
  static constexpr std::array<std::string_view, 6> kTags = {"cpp", "cuda", "c++", "cu", "cc", "cxx"};
  return std::any_of(kTags.begin(), kTags.end(), [tag](std::string_view known) {
    return known.size() == tag.size() &&
           std::equal(known.begin(), known.end(), tag.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
           });
  });
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r") == std::string_view::npos;
}

Extraction nothing(bool cut, std::string reason) {
  Extraction result;
  result.status = cut ? TurnStatus::kTruncated : TurnStatus::kNoCode;
  result.reason = std::move(reason);
  return result;
}

// What to say of a reply without a usable block: the nearest miss.
std::string missing(const std::vector<FencedBlock>& blocks, bool cut) {
  if (cut) return "the reply was cut by the token limit before a code block was complete";
  if (blocks.empty()) return "the reply has no fenced code block";
  const FencedBlock& last = blocks.back();
  if (!last.closed) return "the last code block is never closed";
  if (is_kernel_tag(last.tag)) return "the code block is empty";
  if (last.tag.empty()) return "the code block has no language tag";
  return fmt::format("no code block is tagged cpp; the last one is tagged {}", last.tag.substr(0, 40));
}

}  // namespace

Extraction extract_kernel(std::string_view reply, std::string_view finish_reason,
                          std::string_view entry_point) {
  const bool cut = finish_reason == "length" || finish_reason == "max_tokens";
  std::vector<FencedBlock> blocks = fenced_blocks(reply);
  FencedBlock* fallback = nullptr;
  FencedBlock* chosen = nullptr;
  for (auto block = blocks.rbegin(); block != blocks.rend() && chosen == nullptr; ++block) {
    if (!block->closed || !is_kernel_tag(block->tag) || is_blank(block->content)) continue;
    if (fallback == nullptr) fallback = &*block;
    if (defines_function(block->content, entry_point)) chosen = &*block;
  }
  // A fragment before an unfinished block is not the answer that the model was giving.
  const bool unfinished = !blocks.empty() && !blocks.back().closed;
  if (chosen == nullptr && !unfinished) chosen = fallback;
  if (chosen == nullptr) return nothing(cut, missing(blocks, cut));
  Extraction found;
  found.source = std::move(chosen->content);
  found.language = std::move(chosen->tag);
  return found;
}

}  // namespace fixit

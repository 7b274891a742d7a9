#include "worker/extract/fenced_blocks.h"

#include <algorithm>
#include <optional>

namespace fixit {
namespace {

struct Fence {
  char sign = '`';
  size_t length = 0;
  size_t indent = 0;
  std::string_view info;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<Fence> parse_fence(std::string_view line) {
  Fence fence;
  while (fence.indent < line.size() && line[fence.indent] == ' ') ++fence.indent;
  if (fence.indent > 3 || fence.indent == line.size()) return std::nullopt;
  fence.sign = line[fence.indent];
  if (fence.sign != '`' && fence.sign != '~') return std::nullopt;
  const size_t end = std::min(line.find_first_not_of(fence.sign, fence.indent), line.size());
  fence.length = end - fence.indent;
  fence.info = trimmed(line.substr(end));
  if (fence.length < 3) return std::nullopt;
  // ```like this``` is code inside a line, not a fence
  if (fence.sign == '`' && fence.info.find('`') != std::string_view::npos) return std::nullopt;
  return fence;
}

// Length of the tag `name` (with its < and >) at the start of `text`, any case; 0: none.
size_t tag_length(std::string_view text, std::string_view name) {
  if (text.size() < name.size()) return 0;
  const bool same = std::equal(name.begin(), name.end(), text.begin(), [](char want, char have) {
    return want == (have >= 'A' && have <= 'Z' ? static_cast<char>(have - 'A' + 'a') : have);
  });
  return same ? name.size() : 0;
}

struct ThinkTag {
  size_t begin = 0;
  size_t end = 0;
  bool opens = false;
};

std::optional<ThinkTag> find_think_tag(std::string_view text) {
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::string_view rest = text.substr(at);
    for (const std::string_view name : {"<think>", "<thinking>"})
      if (const size_t length = tag_length(rest, name)) return ThinkTag{at, at + length, true};
    for (const std::string_view name : {"</think>", "</thinking>"})
      if (const size_t length = tag_length(rest, name)) return ThinkTag{at, at + length, false};
  }
  return std::nullopt;
}

class BlockScanner {
 public:
  void line(std::string_view text) {
    if (thinking_) {
      skip_thinking(text);
    } else if (fence_) {
      inside(text);
    } else {
      outside(text);
    }
  }

  std::vector<FencedBlock> take() { return std::move(blocks_); }

 private:
  void skip_thinking(std::string_view text) {
    for (auto tag = find_think_tag(text); tag; tag = find_think_tag(text)) {
      text.remove_prefix(tag->end);
      if (tag->opens) continue;
      thinking_ = false;
      outside(text);
      return;
    }
  }

  void inside(std::string_view text) {
    const auto close = parse_fence(text);
    if (close && close->sign == fence_->sign && close->length >= fence_->length && close->info.empty()) {
      blocks_.back().closed = true;
      fence_.reset();
      return;
    }
    const std::string_view bare = trimmed(text);
    const auto tag = find_think_tag(bare);
    if (tag && !tag->opens &&
        tag->begin == 0) {  // no kernel has such a line: the thinking held an open fence
      fence_.reset();
      blocks_.clear();
      outside(bare.substr(tag->end));
      return;
    }
    size_t indent = 0;
    while (indent < fence_->indent && indent < text.size() && text[indent] == ' ') ++indent;
    blocks_.back().content.append(text.substr(indent)).push_back('\n');
  }

  void outside(std::string_view text) {
    while (true) {
      if (const auto fence = parse_fence(text)) {
        fence_ = fence;
        const size_t end = std::min(fence->info.find_first_of(" \t{,:;"), fence->info.size());
        blocks_.push_back({std::string(fence->info.substr(0, end)), "", false});
        return;
      }
      const auto tag = find_think_tag(text);
      if (!tag) return;
      text.remove_prefix(tag->end);
      if (tag->opens) {
        thinking_ = true;
        skip_thinking(text);
        return;
      }
      blocks_.clear();
    }
  }

  std::vector<FencedBlock> blocks_;
  std::optional<Fence> fence_;
  bool thinking_ = false;
};

}  // namespace

std::vector<FencedBlock> fenced_blocks(std::string_view reply) {
  BlockScanner scanner;
  while (!reply.empty()) {
    const size_t end = std::min(reply.find('\n'), reply.size());
    std::string_view line = reply.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    scanner.line(line);
    reply.remove_prefix(std::min(end + 1, reply.size()));
  }
  return scanner.take();
}

}  // namespace fixit

#include "core/record/recorded_replies.h"

#include <algorithm>
#include <vector>

#include "core/base/file.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxReplyBytes = 16u << 20;
constexpr size_t kMaxReplies = 100000;

Result<std::vector<fs::path>> reply_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  if (error)
    return Status(ErrorCode::kNotFound, "recorded replies: " + folder.string() + ": " + error.message());
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) break;
    std::error_code unreadable;
    if (it->path().extension() == ".md" && it->is_regular_file(unreadable)) files.push_back(it->path());
    if (files.size() > kMaxReplies)
      return Status(ErrorCode::kInvalid, folder.string() + ": more than 100000 replies");
  }
  if (error)
    return Status(ErrorCode::kUnavailable, "recorded replies: " + folder.string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

// The line at `begin` without its end; moves `begin` past it.
std::string_view next_line(std::string_view text, size_t& begin) {
  const size_t end = std::min(text.find('\n', begin), text.size());
  std::string_view line = text.substr(begin, end - begin);
  begin = std::min(end + 1, text.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Status read_front_matter(std::string_view yaml, const std::string& file, RecordedReply& reply) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, parse_yaml(yaml, file, 2));
  YamlFaults faults(file);
  YamlMap map(faults, *document, "");
  map.choice("finish_reason", reply.finish_reason, {"stop", "length"});
  map.text("reasoning", reply.reasoning, {.most_bytes = kMaxReplyBytes});
  map.finish();
  return faults.status();
}

Result<RecordedReply> parse_reply(std::string_view text, const std::string& file) {
  RecordedReply reply;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  size_t begin = 0;
  if (next_line(text, begin) != "---") {
    reply.text = text;
    return reply;
  }
  const size_t first = begin;
  while (begin < text.size()) {
    const size_t line_begin = begin;
    if (next_line(text, begin) != "---") continue;
    const std::string_view yaml = text.substr(first, line_begin - first);
    if (yaml.find_first_not_of(" \t\r\n") != std::string_view::npos)
      FIXIT_RETURN_IF_ERROR(read_front_matter(yaml, file, reply));
    reply.text = text.substr(begin);
    return reply;
  }
  return Status(ErrorCode::kInvalid,
                file + ":1: front matter begins with `---`, but no second `---` line ends it");
}

}  // namespace

Result<std::map<std::string, RecordedReply>> load_recorded_replies(const fs::path& folder) {
  FIXIT_ASSIGN_OR_RETURN(const auto files, reply_files(folder));
  if (files.empty())
    return Status(ErrorCode::kNotFound, "recorded replies: no .md file below " + folder.string());
  std::map<std::string, RecordedReply> replies;
  for (const auto& file : files) {
    FIXIT_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxReplyBytes));
    FIXIT_ASSIGN_OR_RETURN(auto reply, parse_reply(text, file.string()));
    const std::string slot = file.lexically_relative(folder).replace_extension().generic_string();
    replies.emplace(slot, std::move(reply));
  }
  return replies;
}

}  // namespace fixit

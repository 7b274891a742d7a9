#include <fmt/format.h>

#include "core/base/file.h"
#include "core/config/config_files.h"
#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

constexpr uint64_t kMaxFragmentBytes = 4u << 20;

bool is_header(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".h" || extension == ".hpp" || extension == ".cuh";
}

// CRLF and a missing last newline must not change what a model sees.
std::string normalised(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string result;
  result.reserve(text.size() + 1);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') result += text[i];
  while (result.ends_with('\n')) result.pop_back();
  return result + "\n";
}

Status add_fragment(const std::filesystem::path& folder, const std::string& fragment, PackContent& pack) {
  FIXIT_ASSIGN_OR_RETURN(const auto path, join_inside(folder, fragment));
  FIXIT_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, kMaxFragmentBytes));
  const std::string text = normalised(bytes);
  if (!pack.text.empty()) pack.text += "\n";
  if (!is_header(path)) {
    if (path.extension() != ".md")
      return Status(ErrorCode::kInvalid, "accepted: .md, or a header .h, .hpp, .cuh");
    pack.text += text;
    return {};
  }
  const std::string name = path.filename().string();
  if (!is_plain_name(name))
    return Status(ErrorCode::kInvalid, fmt::format("a header's name: {}", kPlainNameRule));
  if (!pack.headers.emplace(name, text).second)
    return Status(ErrorCode::kInvalid, "a header of this name is listed already");
  pack.text += fmt::format("Header `{0}` (use it with `#include \"{0}\"`):\n\n~~~cpp\n{1}~~~\n", name, text);
  return {};
}

}  // namespace

Result<PackContent> load_pack(const std::filesystem::path& folder) {
  const auto file = folder / "pack.yaml";
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  std::string description;
  map.text("description", description);
  map.require("fragments", "a list of files of this folder, in order");
  std::vector<std::string> fragments;
  KeyLines lines;
  if (const YamlNode* node = map.value("fragments")) {
    read_texts(faults, *node, "fragments", fragments, &lines);
    if (fragments.empty()) map.fault("fragments", "must list at least one file");
  }
  map.finish();
  FIXIT_RETURN_IF_ERROR(faults.status());
  PackContent pack;
  for (size_t i = 0; i < fragments.size(); ++i) {
    const std::string key = fmt::format("fragments[{}]", i);
    const Status status = add_fragment(folder, fragments[i], pack);
    if (!status.ok()) faults.add(lines[key], key, fmt::format("`{}`: {}", fragments[i], status.message()));
  }
  FIXIT_RETURN_IF_ERROR(faults.status());
  return pack;
}

}  // namespace fixit

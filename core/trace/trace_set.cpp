#include "core/trace/trace_set.h"

#include <algorithm>
#include <set>

#include "core/base/file.h"
#include "core/trace/workload_json.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxDefinitionBytes = 4u << 20;
constexpr uint64_t kMaxWorkloadFileBytes = 256u << 20;
constexpr size_t kMaxFiles = 100000;

// Regular files with the extension below `folder`, sorted so that order never depends on the file system.
// Links to folders are not followed.
Result<std::vector<fs::path>> files_below(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  if (error)
    return Status(ErrorCode::kNotFound, "reading folder " + folder.string() + ": " + error.message());
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) break;
    std::error_code unreadable;
    if (it->path().extension() == extension && it->is_regular_file(unreadable)) files.push_back(it->path());
    if (files.size() > kMaxFiles)
      return Status(ErrorCode::kInvalid, folder.string() + ": more than 100000 files");
  }
  if (error)
    return Status(ErrorCode::kUnavailable, "reading folder " + folder.string() + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::string nearest_names(const std::map<std::string, size_t>& names) {
  std::string text;
  for (const auto& [name, unused] : names) {
    if (text.size() > 400) return text + ", ...";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

struct Loading {
  std::vector<LoadedProblem> problems;
  std::map<std::string, size_t> by_name;
  std::map<std::string, std::string> definition_files;  // name -> file, for errors
  std::map<std::string, std::string> uuids;             // uuid -> file:line
};

Status load_definitions(const fs::path& root, Loading& loading) {
  FIXIT_ASSIGN_OR_RETURN(const auto files, files_below(root / "definitions", ".json"));
  for (const auto& file : files) {
    FIXIT_ASSIGN_OR_RETURN(std::string text, read_file(file, kMaxDefinitionBytes));
    FIXIT_ASSIGN_OR_RETURN(Definition definition, parse_definition(text, file.string()));
    const auto [known, added] = loading.definition_files.emplace(definition.name, file.string());
    if (!added)
      return Status(ErrorCode::kInvalid, file.string() + ": name: definition `" + definition.name +
                                             "` exists already in " + known->second);
    loading.by_name[definition.name] = loading.problems.size();
    LoadedProblem problem;
    problem.definition = std::move(definition);
    problem.definition_json = std::move(text);
    problem.root = root;
    loading.problems.push_back(std::move(problem));
  }
  return {};
}

Status add_workload(std::string_view text, const std::string& where, const std::string& stem,
                    Loading& loading) {
  FIXIT_ASSIGN_OR_RETURN(auto line, parse_workload_line(text, where));
  // A bare workload does not name its definition: by the layout's convention the file does.
  const std::string& name = line.definition.empty() ? stem : line.definition;
  const auto found = loading.by_name.find(name);
  if (found == loading.by_name.end())
    return Status(ErrorCode::kInvalid,
                  where + ": definition: `" + name +
                      "` is not in this trace set, which has: " + nearest_names(loading.by_name));
  LoadedProblem& problem = loading.problems[found->second];
  FIXIT_RETURN_IF_ERROR(check_workload(problem.definition, line.workload, where));
  const auto [known, added] = loading.uuids.emplace(line.workload.uuid, where);
  if (!added)
    return Status(ErrorCode::kInvalid,
                  where + ": uuid: `" + line.workload.uuid + "` exists already at " + known->second);
  problem.workloads.push_back(std::move(line.workload));
  problem.workload_jsons.push_back(std::move(line.json));
  return {};
}

Status load_workloads(const fs::path& root, Loading& loading) {
  std::error_code error;
  if (!fs::exists(root / "workloads", error)) return {};
  FIXIT_ASSIGN_OR_RETURN(const auto files, files_below(root / "workloads", ".jsonl"));
  for (const auto& file : files) {
    FIXIT_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxWorkloadFileBytes));
    int number = 0;
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find('\n', begin);
      if (end == std::string::npos) end = text.size();
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      FIXIT_RETURN_IF_ERROR(
          add_workload(line, file.string() + ":" + std::to_string(number), file.stem().string(), loading));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<LoadedProblem>> load_trace_set(const fs::path& root) {
  std::error_code error;
  if (!fs::is_directory(root / "definitions", error))
    return Status(
        ErrorCode::kNotFound,
        root.string() + " is not a trace set: it has no folder `definitions` (FlashInfer-Trace layout)");
  Loading loading;
  FIXIT_RETURN_IF_ERROR(load_definitions(root, loading));
  FIXIT_RETURN_IF_ERROR(load_workloads(root, loading));
  std::sort(
      loading.problems.begin(), loading.problems.end(),
      [](const LoadedProblem& a, const LoadedProblem& b) { return a.definition.name < b.definition.name; });
  return std::move(loading.problems);
}

}  // namespace fixit

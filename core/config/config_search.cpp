#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/config/config_files.h"
#include "core/config/file_names.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

// PREFIX/share/fixit of the PREFIX/bin/PROGRAM that runs.
fs::path installed_share() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path().parent_path() / "share" / "fixit";
}

void add_names(const fs::path& folder, std::string_view extension, std::set<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code unreadable;
    if (extension.empty() ? it->is_directory(unreadable) : it->path().extension() == extension)
      names.insert(it->path().stem().string());
  }
}

Status not_found(const char* kind, const std::string& name, const fs::path& place,
                 const std::set<std::string>& names) {
  std::string known;
  for (const auto& candidate : names) known += (known.empty() ? "" : ", ") + candidate;
  return Status(ErrorCode::kNotFound,
                fmt::format("no {} `{}` in {}; there are: {}{}", kind, name, place.string(),
                            known.empty() ? "none" : known, suggestion(name, {names.begin(), names.end()})));
}

}  // namespace

ConfigSearch::ConfigSearch(const fs::path& sweep_file) {
  std::error_code error;
  sweep_folder_ = fs::absolute(sweep_file, error).parent_path();
  const auto add = [&](const fs::path& root) {
    if (!root.empty() && std::find(roots_.begin(), roots_.end(), root) == roots_.end())
      roots_.push_back(root);
  };
  for (fs::path folder = sweep_folder_;; folder = folder.parent_path()) {
    add(folder);
    if (fs::is_directory(folder / "configs", error) || folder == folder.parent_path()) break;
  }
  add(fs::current_path(error));
  add(installed_share());
}

Result<fs::path> ConfigSearch::yaml_file(const char* kind, const fs::path& folder,
                                         const std::string& name) const {
  if (!is_plain_name(name))
    return Status(ErrorCode::kInvalid, fmt::format("{} `{}` is not a name; accepted: {}", kind,
                                                   name.substr(0, 60), kPlainNameRule));
  std::set<std::string> names;
  for (const auto& root : roots_) {
    std::error_code error;
    const fs::path file = root / folder / (name + ".yaml");
    if (fs::is_regular_file(file, error)) return file;
    add_names(root / folder, ".yaml", names);
  }
  return not_found(kind, name, folder, names);
}

Result<fs::path> ConfigSearch::model(const std::string& name) const {
  return yaml_file("model", "configs/models", name);
}
Result<fs::path> ConfigSearch::gpu(const std::string& name) const {
  return yaml_file("GPU", "configs/gpus", name);
}
Result<fs::path> ConfigSearch::recipe(const std::string& name) const {
  return yaml_file("recipe", "recipes", name);
}

Result<fs::path> ConfigSearch::pack(const std::string& name) const {
  std::error_code error;
  if (name.find('/') != std::string::npos) {  // a user's own pack, by path
    for (const auto& root : {sweep_folder_, fs::current_path(error)})
      if (fs::is_regular_file(root / name / "pack.yaml", error)) return root / name;
    return Status(ErrorCode::kNotFound,
                  fmt::format("no pack at `{}`: a pack is a folder with pack.yaml", name));
  }
  if (!is_plain_name(name))
    return Status(ErrorCode::kInvalid, fmt::format("pack `{}` is not a name; accepted: {}, or a path",
                                                   name.substr(0, 60), kPlainNameRule));
  std::set<std::string> names;
  for (const auto& root : roots_) {
    const fs::path folder = root / "configs" / "packs" / name;
    if (fs::is_regular_file(folder / "pack.yaml", error)) return folder;
    add_names(root / "configs" / "packs", "", names);
  }
  return not_found("pack", name, "configs/packs", names);
}

Result<fs::path> ConfigSearch::trace_set(const std::string& folder) const {
  std::error_code error;
  std::vector<fs::path> places = {sweep_folder_, fs::current_path(error)};
  places.insert(places.end(), roots_.begin(), roots_.end());
  std::string tried;
  for (const auto& place : places) {
    const fs::path path = place / folder;  // an absolute folder replaces `place`
    if (fs::is_directory(path, error)) return path.lexically_normal();
    if (tried.find(path.string()) == std::string::npos) tried += (tried.empty() ? "" : ", ") + path.string();
  }
  return Status(ErrorCode::kNotFound, fmt::format("no trace set `{}`; looked at {}", folder, tried));
}

}  // namespace fixit

// YAML files to typed structs. Every error names file:line, the key, what was found and what is accepted;
// an unknown key is an error with the nearest known key as suggestion; duplicate keys are errors.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/gpu_config.h"
#include "core/config/model_config.h"
#include "core/config/recipe_config.h"
#include "core/config/site_config.h"
#include "core/config/sweep_config.h"

namespace fixit {

// Where values were written, for errors found later than loading: "problems[0]", "models[1]", "fixit.recipe",
// "packs[0].use[1]", "repair.model" -> line.
using KeyLines = std::map<std::string, int>;

// `lines`, where given, is filled. A file's faults are all reported together, one a line.
Result<SweepConfig> load_sweep(const std::filesystem::path& file, KeyLines* lines = nullptr);
Result<ModelConfig> load_model(const std::filesystem::path& file);
Result<GpuConfig> load_gpu(const std::filesystem::path& file);
Result<RecipeConfig> load_recipe(const std::filesystem::path& file, KeyLines* lines = nullptr);

// Finds configs/KIND/NAME.yaml (recipes/NAME.yaml): first beside the sweep file (its folder's ancestors up to
// the one that holds `configs/`), then the working folder, then the installed share folder.
// kNotFound lists the names that exist.
class ConfigSearch {
 public:
  explicit ConfigSearch(const std::filesystem::path& sweep_file);
  Result<std::filesystem::path> model(const std::string& name) const;   // configs/models/NAME.yaml
  Result<std::filesystem::path> gpu(const std::string& name) const;     // configs/gpus/NAME.yaml
  Result<std::filesystem::path> recipe(const std::string& name) const;  // recipes/NAME.yaml
  Result<std::filesystem::path> pack(const std::string& name) const;    // configs/packs/NAME/ (or a path)
  // A folder: absolute, or relative to the sweep file's folder, the working folder or the folders above.
  Result<std::filesystem::path> trace_set(const std::string& folder) const;

 private:
  Result<std::filesystem::path> yaml_file(const char* kind, const std::filesystem::path& folder,
                                          const std::string& name) const;

  std::filesystem::path sweep_folder_;
  std::vector<std::filesystem::path> roots_;
};

// The whole text of a pack: pack.yaml lists fragments in order. A Markdown fragment is text; a C++ header
// (.h, .hpp, .cuh) is shown in a code block, and is placed beside candidates so that they can include it.
struct PackContent {
  std::string text;
  std::map<std::string, std::string> headers;
};
Result<PackContent> load_pack(const std::filesystem::path& folder);

// Shell-style match with * and ? over a whole name.
bool name_matches(std::string_view pattern, std::string_view name);

// "; did you mean `x`?" with the name of `known` nearest to `wrong` by edit distance; empty where none is
// near.
std::string suggestion(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace fixit

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

Result<SweepConfig> load_sweep(const std::filesystem::path& file);
Result<ModelConfig> load_model(const std::filesystem::path& file);
Result<GpuConfig> load_gpu(const std::filesystem::path& file);
Result<RecipeConfig> load_recipe(const std::filesystem::path& file);

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
  Result<std::filesystem::path> trace_set(const std::string& folder) const;

 private:
  std::vector<std::filesystem::path> roots_;
};

// The whole text of a pack: pack.yaml lists fragments (Markdown) and headers in order.
struct PackContent {
  std::string text;
  std::map<std::string, std::string> headers;
};
Result<PackContent> load_pack(const std::filesystem::path& folder);

// Shell-style match with * and ? over a whole name.
bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace fixit

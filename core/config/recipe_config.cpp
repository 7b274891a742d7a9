#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_files.h"
#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

// Statuses of turns that a teacher can be asked to mend. The closed list stands beside TurnStatus in
// core/record, which is built on this folder; a test holds both together.
const std::vector<std::string>& mendable_statuses() {
  static const std::vector<std::string> kNames = {
      "INCORRECT_NUMERICAL", "INCORRECT_SHAPE", "INCORRECT_DTYPE", "NO_CODE",     "TRUNCATED", "BANNED",
      "COMPILE_ERROR",       "RUNTIME_ERROR",   "KERNEL_TIMEOUT",  "UNSUPPORTED", "REJECTED"};
  return kNames;
}

void read_model(YamlMap& map, std::string& model, KeyLines& lines) {
  map.require("model", "the name of configs/models/NAME.yaml");
  if (map.text("model", model) && !is_plain_name(model))
    map.fault("model", fmt::format("is not a name; accepted: {}", kPlainNameRule));
  lines[map.path_of("model")] = map.line_of("model");
}

void read_failures(YamlMap& map, FailureFilter& failures) {
  map.require("statuses", "a list of failure statuses");
  if (map.texts("statuses", failures.statuses)) {
    const auto& known = mendable_statuses();
    std::string accepted;
    for (const auto& name : known) accepted += (accepted.empty() ? "" : ", ") + name;
    for (const auto& status : failures.statuses)
      if (std::find(known.begin(), known.end(), status) == known.end())
        map.fault("statuses", fmt::format("`{}` is not a status of a failed kernel; accepted: {}{}",
                                          status.substr(0, 60), accepted, suggestion(status, known)));
    if (failures.statuses.empty()) map.fault("statuses", "must name at least one");
  }
  map.integer("max_turn", failures.max_turn, 0, 63);
  map.texts("problems", failures.problems);
  map.finish();
}

void read_repair(YamlMap& map, RepairStage& repair, KeyLines& lines) {
  read_model(map, repair.model, lines);
  map.integer("turns", repair.turns, 1, 64);
  map.number("target_speedup", repair.target_speedup, {.least = 0, .most = 1e6, .above = true});
  map.number("min_speedup", repair.min_speedup, {.least = 0, .most = 1e6});
  map.flag("require_instructions", repair.require_instructions);
  map.choice("keep", repair.keep, {"best", "latest", "all"});
  map.finish();
}

void read_rationale(YamlMap& map, RationaleStage& rationale, KeyLines& lines) {
  read_model(map, rationale.model, lines);
  map.integer("min_chars", rationale.min_chars, 0, 10000000);
  map.integer("max_chars", rationale.max_chars, 1, 10000000);
  if (rationale.min_chars > rationale.max_chars) map.fault("min_chars", "is more than max_chars");
  map.texts("forbidden", rationale.forbidden);
  map.finish();
}

}  // namespace

Result<RecipeConfig> load_recipe(const std::filesystem::path& file, KeyLines* lines_out) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  RecipeConfig recipe;
  KeyLines lines;
  recipe.name = file.stem().string();
  if (!is_plain_name(recipe.name))
    map.fault("", fmt::format("the file's name is not a recipe's; accepted: {}", kPlainNameRule));
  map.require("failures", "a mapping with `statuses`");
  if (const YamlNode* node = map.value("failures")) {
    YamlMap failures(faults, *node, "failures");
    read_failures(failures, recipe.failures);
  }
  map.integer("per_definition", recipe.per_definition, 0, 1000000);
  map.require("repair", "a mapping with `model`");
  if (const YamlNode* node = map.value("repair")) {
    YamlMap repair(faults, *node, "repair");
    read_repair(repair, recipe.repair, lines);
  }
  map.require("rationale", "a mapping with `model`");
  if (const YamlNode* node = map.value("rationale")) {
    YamlMap rationale(faults, *node, "rationale");
    read_rationale(rationale, recipe.rationale, lines);
  }
  map.finish();
  FIXIT_RETURN_IF_ERROR(faults.status());
  if (lines_out != nullptr) *lines_out = std::move(lines);
  return recipe;
}

}  // namespace fixit

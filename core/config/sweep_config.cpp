#include <fmt/format.h>

#include <set>

#include "core/config/config_files.h"
#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

// Names of files, each once. Faults go to the item's line.
void read_names(YamlMap& map, std::string_view key, std::vector<std::string>& out, KeyLines& lines,
                bool plain) {
  const YamlNode* node = map.value(key);
  if (node == nullptr) return;
  const std::string path = map.path_of(key);
  read_texts(map.faults(), *node, path, out, &lines);
  std::set<std::string> seen;
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string item = fmt::format("{}[{}]", path, i);
    if (plain && !is_plain_name(out[i]))
      map.faults().add(lines[item], item, fmt::format("is not a name; accepted: {}", kPlainNameRule));
    if (plain && out[i] == "none") map.faults().add(lines[item], item, "`none` is reserved");
    if (!seen.insert(out[i]).second) map.faults().add(lines[item], item, "is named twice");
  }
  if (out.empty()) map.fault(key, "must name at least one");
}

void read_problem(YamlFaults& faults, const YamlNode& node, const std::string& path, ProblemSelector& out) {
  if (node.kind == YamlNode::Kind::kScalar && !node.text.empty() && node.text.size() <= 200) {
    out.pattern = node.text;
    return;
  }
  if (node.kind != YamlNode::Kind::kMap) {
    faults.add(node.line, path, "accepted: a definition's name, a pattern with * and ?, or {name, workload}");
    return;
  }
  YamlMap map(faults, node, path);
  map.require("name", "a definition's name or a pattern with * and ?");
  map.text("name", out.pattern, {.most_bytes = 200});
  map.text("workload", out.workload, {.most_bytes = 200});
  map.finish();
}

void read_pack(YamlFaults& faults, const YamlNode& node, const std::string& path, PackSelector& out,
               KeyLines& lines) {
  lines[path] = node.line;
  if (node.kind == YamlNode::Kind::kScalar) {
    out.name = node.text;
    out.use = {node.text};
    lines[path + ".use[0]"] = node.line;
  } else {
    YamlMap map(faults, node, path);
    map.require("name", "a name for this entry of the axis");
    map.text("name", out.name);
    if (map.has("use")) {
      read_names(map, "use", out.use, lines, false);
    } else {
      (void)map.value("use");
      out.use = {out.name};
      lines[path + ".use[0]"] = node.line;
    }
    map.texts("problems", out.problems);
    map.finish();
  }
  if (!is_plain_name(out.name))
    faults.add(node.line, path, fmt::format("the pack's name is not a name; accepted: {}", kPlainNameRule));
}

template <typename Item, typename Read>
void read_list(YamlMap& map, std::string_view key, std::vector<Item>& out, const Read& read) {
  const YamlNode* node = map.value(key);
  if (node == nullptr) return;
  const std::string path = map.path_of(key);
  if (node->kind == YamlNode::Kind::kScalar) {
    read(*node, path + "[0]", out.emplace_back());
    return;
  }
  if (node->kind != YamlNode::Kind::kSequence || node->items.empty()) {
    map.fault(key, "accepted: a list with at least one entry");
    return;
  }
  for (size_t i = 0; i < node->items.size(); ++i)
    read(*node->items[i], fmt::format("{}[{}]", path, i), out.emplace_back());
}

void read_axes(YamlMap& map, SweepConfig& sweep, KeyLines& lines) {
  YamlFaults& faults = map.faults();
  map.require("trace_sets", "a list of folders");
  read_names(map, "trace_sets", sweep.trace_sets, lines, false);
  map.require("problems", "a list of definitions' names or patterns");
  read_list(map, "problems", sweep.problems,
            [&](const YamlNode& item, const std::string& path, ProblemSelector& out) {
              lines[path] = item.line;
              read_problem(faults, item, path, out);
            });
  map.require("models", "a list of names of configs/models/NAME.yaml");
  read_names(map, "models", sweep.models, lines, true);
  map.require("gpus", "a list of names of configs/gpus/NAME.yaml");
  read_names(map, "gpus", sweep.gpus, lines, true);
  map.require("packs", "a list of names of configs/packs/NAME/, or {name, use, problems}");
  read_list(map, "packs", sweep.packs, [&](const YamlNode& item, const std::string& path, PackSelector& out) {
    read_pack(faults, item, path, out, lines);
  });
  std::set<std::string> names;
  for (size_t i = 0; i < sweep.packs.size(); ++i)
    if (const std::string path = fmt::format("packs[{}]", i); !names.insert(sweep.packs[i].name).second)
      faults.add(lines[path], path, "has the name of an earlier entry");
}

}  // namespace

Result<SweepConfig> load_sweep(const std::filesystem::path& file, KeyLines* lines_out) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  SweepConfig sweep;
  KeyLines lines;
  sweep.name = file.stem().string();
  map.text("name", sweep.name);
  if (!is_sweep_name(sweep.name))
    map.fault("name",
              "is not a sweep's name; accepted: lower-case letters, digits, dots, dashes and underscores, at "
              "most 64, beginning with a letter or digit (default: the file's name)");
  read_axes(map, sweep, lines);
  map.integer("samples", sweep.samples, 1, 10000);
  map.integer("turns", sweep.turns, 1, 64);
  map.number("target_speedup", sweep.target_speedup, {.least = 0, .most = 1e6, .above = true});
  map.integer("priority", sweep.priority, 1, 9);
  if (const YamlNode* node = map.value("budget")) {
    YamlMap budget(faults, *node, "budget");
    budget.integer("tokens", sweep.budget.tokens, 0, 1000000000000000);
    budget.number("usd", sweep.budget.usd, {.least = 0, .most = 1e9});
    budget.finish();
  }
  if (const YamlNode* node = map.value("fixit")) {
    YamlMap fixit(faults, *node, "fixit");
    fixit.require("recipe", "the name of recipes/NAME.yaml");
    if (fixit.text("recipe", sweep.recipe) && !is_plain_name(sweep.recipe))
      fixit.fault("recipe", fmt::format("is not a name; accepted: {}", kPlainNameRule));
    lines["fixit.recipe"] = fixit.line_of("recipe");
    fixit.finish();
  }
  map.finish();
  FIXIT_RETURN_IF_ERROR(faults.status());
  if (lines_out != nullptr) *lines_out = std::move(lines);
  return sweep;
}

}  // namespace fixit

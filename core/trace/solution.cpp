#include "core/trace/solution.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/trace/json_fields.h"

namespace fixit {
namespace {

Status check_choice(const JsonFields& fields, std::string_view key, const std::string& value,
                    std::initializer_list<std::string_view> accepted) {
  std::string list;
  for (const auto choice : accepted) {
    if (choice == value) return {};
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return fields.error(key, "is `" + value + "`; accepted: " + list);
}

Status parse_spec(const JsonFields& spec, Solution& solution) {
  FIXIT_ASSIGN_OR_RETURN(solution.language, spec.text("language"));
  FIXIT_RETURN_IF_ERROR(
      check_choice(spec, "language", solution.language, {"python", "triton", "cpp", "cuda", "tilelang"}));
  FIXIT_ASSIGN_OR_RETURN(solution.binding, spec.text_or("binding", "tvm-ffi"));
  FIXIT_RETURN_IF_ERROR(check_choice(spec, "binding", solution.binding, {"tvm-ffi", "c", "torch"}));
  FIXIT_ASSIGN_OR_RETURN(solution.target_hardware, spec.texts("target_hardware"));
  if (solution.target_hardware.empty()) return spec.error("target_hardware", "must name at least one");
  FIXIT_ASSIGN_OR_RETURN(solution.dependencies, spec.texts("dependencies"));
  FIXIT_ASSIGN_OR_RETURN(solution.destination_passing_style, spec.flag_or("destination_passing_style", true));
  FIXIT_ASSIGN_OR_RETURN(solution.entry_point, spec.text("entry_point"));
  const size_t colons = solution.entry_point.find("::");
  if (colons == std::string::npos || solution.entry_point.find("::", colons + 2) != std::string::npos)
    return spec.error("entry_point", "must be `file::symbol`");
  return {};
}

Status parse_sources(const JsonFields& top, Solution& solution) {
  FIXIT_ASSIGN_OR_RETURN(const Json* list, top.array("sources"));
  if (list->empty()) return top.error("sources", "must hold at least one file");
  std::set<std::string> paths;
  for (size_t i = 0; i < list->size(); ++i) {
    FIXIT_ASSIGN_OR_RETURN(
        const JsonFields entry,
        JsonFields::of((*list)[i], top.where(), top.path_of("sources[" + std::to_string(i) + "]")));
    SourceFile file;
    FIXIT_ASSIGN_OR_RETURN(file.path, entry.text("path"));
    FIXIT_ASSIGN_OR_RETURN(file.content, entry.text("content"));
    const std::filesystem::path path(file.path);
    bool climbs = path.is_absolute();
    for (const auto& step : path) climbs = climbs || step == "..";
    if (climbs) return entry.error("path", "`" + file.path + "` must be relative, without `..`");
    if (!paths.insert(file.path).second) return entry.error("path", "`" + file.path + "` appears twice");
    solution.sources.push_back(std::move(file));
  }
  const std::string entry_file = solution.entry_point.substr(0, solution.entry_point.find("::"));
  if (!paths.contains(entry_file))
    return top.error("spec.entry_point", "names `" + entry_file + "`, which `sources` lacks");
  return {};
}

}  // namespace

Result<Solution> parse_solution(std::string_view text, std::string_view where) {
  FIXIT_ASSIGN_OR_RETURN(const Json json, parse_json(text, where));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields top, JsonFields::of(json, where, ""));
  Solution solution;
  FIXIT_ASSIGN_OR_RETURN(solution.name, top.text("name"));
  FIXIT_ASSIGN_OR_RETURN(solution.definition, top.text("definition"));
  FIXIT_ASSIGN_OR_RETURN(solution.author, top.text("author"));
  FIXIT_ASSIGN_OR_RETURN(solution.description, top.text_or("description", ""));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields spec, top.object("spec"));
  FIXIT_RETURN_IF_ERROR(parse_spec(spec, solution));
  FIXIT_RETURN_IF_ERROR(parse_sources(top, solution));
  return solution;
}

std::string write_solution(const Solution& solution) {
  Json json = Json::object();
  json["name"] = solution.name;
  json["definition"] = solution.definition;
  json["author"] = solution.author;
  if (!solution.description.empty()) json["description"] = solution.description;
  json["spec"] = {{"language", solution.language},
                  {"binding", solution.binding},
                  {"target_hardware", solution.target_hardware},
                  {"entry_point", solution.entry_point},
                  {"dependencies", solution.dependencies},
                  {"destination_passing_style", solution.destination_passing_style}};
  json["sources"] = Json::array();
  for (const auto& file : solution.sources)
    json["sources"].push_back(Json{{"path", file.path}, {"content", file.content}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fixit

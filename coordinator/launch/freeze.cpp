#include <fmt/format.h>

#include <algorithm>

#include "coordinator/launch/freeze_problems.h"
#include "coordinator/launch/launch.h"
#include "core/config/config_files.h"
#include "core/record/recorded_replies.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

// What begins an error about `key` of `file`.
std::string where_is(const fs::path& file, const KeyLines& lines, const std::string& key) {
  const auto line = lines.find(key);
  return line == lines.end() ? fmt::format("{}: {}", file.string(), key)
                             : fmt::format("{}:{}: {}", file.string(), line->second, key);
}

class Freezer {
 public:
  explicit Freezer(const fs::path& sweep_file) : file_(sweep_file), search_(sweep_file) {}

  Result<FrozenResult> run() {
    FIXIT_ASSIGN_OR_RETURN(result_.sweep.sweep, load_sweep(file_, &lines_));
    FIXIT_RETURN_IF_ERROR(freeze_problems());
    const SweepConfig& sweep = result_.sweep.sweep;
    for (size_t i = 0; i < sweep.models.size(); ++i)
      FIXIT_RETURN_IF_ERROR(add_model(sweep.models[i], where(fmt::format("models[{}]", i))));
    for (size_t i = 0; i < sweep.gpus.size(); ++i) {
      FIXIT_ASSIGN_OR_RETURN(const fs::path path,
                             found(search_.gpu(sweep.gpus[i]), fmt::format("gpus[{}]", i)));
      FIXIT_ASSIGN_OR_RETURN(auto gpu, load_gpu(path));
      result_.sweep.gpus.push_back(std::move(gpu));
    }
    for (size_t i = 0; i < sweep.packs.size(); ++i)
      FIXIT_RETURN_IF_ERROR(add_pack(sweep.packs[i], fmt::format("packs[{}]", i)));
    FIXIT_RETURN_IF_ERROR(check_every_problem_has_a_pack());
    if (!sweep.recipe.empty()) FIXIT_RETURN_IF_ERROR(add_recipe(sweep.recipe));
    warn_of_missing_replies();
    return std::move(result_);
  }

 private:
  std::string where(const std::string& key) const { return where_is(file_, lines_, key); }

  // A name that the search does not know is an error of the sweep file's line.
  Result<fs::path> found(Result<fs::path> path, const std::string& key) const {
    return path.ok() ? path : Result<fs::path>(path.status().with_context(where(key)));
  }

  Status freeze_problems() {
    const SweepConfig& sweep = result_.sweep.sweep;
    ProblemLibrary library;
    for (size_t i = 0; i < sweep.trace_sets.size(); ++i) {
      const std::string key = fmt::format("trace_sets[{}]", i);
      FIXIT_ASSIGN_OR_RETURN(const fs::path path, found(search_.trace_set(sweep.trace_sets[i]), key));
      const Status added = library.add(path);
      if (!added.ok()) return added.with_context(where(key));
    }
    return library.freeze(
        sweep.problems, [this](const std::string& key) { return where(key); }, result_);
  }

  Status add_model(const std::string& name, const std::string& where) {
    for (const auto& known : result_.sweep.models)
      if (known.config.name == name) return {};
    const auto path = search_.model(name);
    if (!path.ok()) return path.status().with_context(where);
    FrozenModel model;
    FIXIT_ASSIGN_OR_RETURN(model.config, load_model(*path));
    if (model.config.protocol == ModelProtocol::kReplay) {
      const fs::path folder = (path->parent_path() / model.config.replies).lexically_normal();
      auto replies = load_recorded_replies(folder);
      if (!replies.ok()) return replies.status().with_context(path->string() + ": replies");
      std::string bytes = encode(*replies);
      model.replies = sha256(bytes);
      result_.blobs.bytes.emplace(model.replies, std::move(bytes));
      for (const auto& [slot, unused] : *replies) slots_[name].push_back(slot);
    }
    result_.sweep.models.push_back(std::move(model));
    return {};
  }

  Status add_pack(const PackSelector& selector, const std::string& key) {
    FrozenPack pack{
        .name = selector.name, .text = "", .headers = {}, .problems = selector.problems, .hash = ""};
    for (size_t i = 0; i < selector.use.size(); ++i) {
      const std::string use_key = fmt::format("{}.use[{}]", key, i);
      FIXIT_ASSIGN_OR_RETURN(const fs::path folder, found(search_.pack(selector.use[i]), use_key));
      FIXIT_ASSIGN_OR_RETURN(const PackContent content, load_pack(folder));
      if (!pack.text.empty()) pack.text += "\n";
      pack.text += content.text;
      for (const auto& [name, text] : content.headers)
        if (const auto [known, added] = pack.headers.emplace(name, text); !added && known->second != text)
          return Status(
              ErrorCode::kInvalid,
              fmt::format("{}: header {} differs from the one of an earlier pack", where(use_key), name));
    }
    pack.hash = sha256(encode(std::pair(pack.text, pack.headers)));
    for (const auto& pattern : selector.problems) FIXIT_RETURN_IF_ERROR(check_pattern(pattern, where(key)));
    result_.sweep.packs.push_back(std::move(pack));
    return {};
  }

  Status check_pattern(const std::string& pattern, const std::string& where) const {
    std::vector<std::string> names;
    for (const auto& problem : result_.sweep.problems) {
      if (name_matches(pattern, problem.name)) return {};
      names.push_back(problem.name);
    }
    return Status(ErrorCode::kInvalid, fmt::format("{}: problems: `{}` matches no problem of this sweep{}",
                                                   where, pattern, suggestion(pattern, names)));
  }

  Status check_every_problem_has_a_pack() const {
    for (const auto& problem : result_.sweep.problems) {
      const auto& packs = result_.sweep.packs;
      if (std::none_of(packs.begin(), packs.end(),
                       [&](const FrozenPack& pack) { return pack_applies(pack, problem.name); }))
        return Status(ErrorCode::kInvalid,
                      fmt::format("{}: problem `{}` matches the `problems` of no pack; add a pack for it",
                                  file_.string(), problem.name));
    }
    return {};
  }

  Status add_recipe(const std::string& name) {
    FIXIT_ASSIGN_OR_RETURN(const fs::path path, found(search_.recipe(name), "fixit.recipe"));
    KeyLines lines;
    FIXIT_ASSIGN_OR_RETURN(result_.sweep.recipe, load_recipe(path, &lines));
    const RecipeConfig& recipe = *result_.sweep.recipe;
    FIXIT_RETURN_IF_ERROR(add_model(recipe.repair.model, where_is(path, lines, "repair.model")));
    FIXIT_RETURN_IF_ERROR(add_model(recipe.rationale.model, where_is(path, lines, "rationale.model")));
    for (const auto& pattern : recipe.failures.problems)
      if (const Status status = check_pattern(pattern, path.string() + ": failures"); !status.ok())
        result_.warnings.push_back(status.message());
    return {};
  }

  // Not an error: a sweep over more samples than were recorded is a way to see what a lost model looks like.
  void warn_of_missing_replies() {
    const SweepConfig& sweep = result_.sweep.sweep;
    for (const auto& model : sweep.models) {
      const auto slots = slots_.find(model);
      if (slots == slots_.end()) continue;
      for (const auto& problem : result_.sweep.problems)
        for (int sample = 0; sample < sweep.samples; ++sample) {
          const std::string slot = fmt::format("rollout/{}/sample{}/", problem.name, sample);
          const auto& known = slots->second;
          if (std::any_of(known.begin(), known.end(),
                          [&](const std::string& s) { return s.starts_with(slot); }))
            continue;
          result_.warnings.push_back(fmt::format("model {}: no recorded reply for {}turn0", model, slot));
          break;
        }
    }
  }

  fs::path file_;
  ConfigSearch search_;
  KeyLines lines_;
  FrozenResult result_;
  std::map<std::string, std::vector<std::string>> slots_;  // of replay models
};

}  // namespace

Result<FrozenResult> freeze_sweep(const fs::path& sweep_file) {
  return Freezer(sweep_file).run();
}

Result<FrozenResult> freeze_evaluation(const std::string& source, const std::string& problem,
                                       const std::string& gpu, const fs::path& trace_set) {
  if (source.find_first_not_of(" \t\r\n") == std::string::npos)
    return Status(ErrorCode::kInvalid, "the kernel's source is empty");
  const ConfigSearch search(fs::current_path() / "sweep.yaml");  // as for a sweep file of the working folder
  const std::string set = trace_set.empty() ? "configs/traces/cpu" : trace_set.string();
  FIXIT_ASSIGN_OR_RETURN(const fs::path set_path, search.trace_set(set));
  FrozenResult result;
  FrozenSweep& frozen = result.sweep;
  ProblemLibrary library;
  FIXIT_RETURN_IF_ERROR(library.add(set_path));
  if (problem.find_first_of("*?") != std::string::npos)
    return Status(
        ErrorCode::kInvalid,
        fmt::format("problem `{}`: an evaluation takes one definition's name, not a pattern", problem));
  frozen.sweep.problems = {{.pattern = problem, .workload = ""}};
  FIXIT_RETURN_IF_ERROR(library.freeze(
      frozen.sweep.problems, [&](const std::string&) { return "problem in " + set_path.string(); }, result));
  FIXIT_ASSIGN_OR_RETURN(const fs::path gpu_path, search.gpu(gpu));
  FIXIT_ASSIGN_OR_RETURN(auto gpu_config, load_gpu(gpu_path));
  frozen.gpus.push_back(std::move(gpu_config));
  frozen.sweep.gpus = {gpu};
  frozen.sweep.turns = 1;
  frozen.evaluate_source = sha256(source);
  result.blobs.bytes.emplace(frozen.evaluate_source, source);
  // The name follows from all that decides the verdict, so that equal requests are one sweep and others never
  // clash.
  frozen.sweep.name =
      "eval-" +
      sha256_of({frozen.evaluate_source, encode(frozen.problems), encode(frozen.gpus)}).substr(0, 16);
  return result;
}

}  // namespace fixit

#include "coordinator/launch/freeze_problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/file.h"
#include "core/config/config_files.h"
#include "core/trace/safetensors.h"

namespace fixit {
namespace {

const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

// Freezes the workloads of one problem. Files that several tensors share are read once.
class WorkloadFreezer {
 public:
  WorkloadFreezer(const LoadedProblem& problem, SweepBlobs& blobs) : problem_(problem), blobs_(blobs) {}

  Result<FrozenWorkload> freeze(size_t index) {
    const Workload& workload = problem_.workloads[index];
    where_ = fmt::format("{}: workload {}", problem_.definition.name, workload.uuid);
    FrozenWorkload frozen;
    frozen.uuid = workload.uuid;
    frozen.json = problem_.workload_jsons[index];
    for (const auto& [name, input] : workload.inputs)
      if (const auto* stored = std::get_if<StoredTensor>(&input))
        FIXIT_RETURN_IF_ERROR(
            add(problem_.definition.inputs, "inputs." + name, name, *stored, workload, frozen));
    for (const auto& [name, stored] : workload.outputs)
      FIXIT_RETURN_IF_ERROR(
          add(problem_.definition.outputs, "outputs." + name, name, stored, workload, frozen));
    return frozen;
  }

 private:
  Status add(const std::vector<TensorSpec>& specs, const std::string& field, const std::string& name,
             const StoredTensor& stored, const Workload& workload, FrozenWorkload& frozen) {
    const std::string where = fmt::format("{}: {}: {}", where_, field, stored.path);
    auto hash = hashes_.find(stored.path);
    if (hash == hashes_.end()) {
      const auto path = join_inside(problem_.root, stored.path);
      if (!path.ok()) return path.status().with_context(where);
      auto bytes = read_file(*path);
      if (!bytes.ok()) return bytes.status().with_context(where);
      hash = hashes_.emplace(stored.path, sha256(*bytes)).first;
      blobs_.bytes.emplace(hash->second, std::move(*bytes));
    }
    frozen.tensors[stored.path] = hash->second;
    const auto view = find_tensor(blobs_.bytes.at(hash->second), stored.tensor_key);
    if (!view.ok()) return view.status().with_context(where);
    const TensorSpec* spec = find_spec(specs, name);  // check_workload() saw that it exists
    FIXIT_ASSIGN_OR_RETURN(const auto shape, resolve_shape(problem_.definition, *spec, workload));
    if (view->dtype != spec->dtype || view->shape != shape)
      return Status(ErrorCode::kInvalid,
                    fmt::format("{}: tensor `{}` is {} [{}], the definition wants {} [{}]", where,
                                stored.tensor_key, name_of(view->dtype), fmt::join(view->shape, ", "),
                                name_of(spec->dtype), fmt::join(shape, ", ")));
    return {};
  }

  const LoadedProblem& problem_;
  SweepBlobs& blobs_;
  std::string where_;
  std::map<std::string, BlobHash> hashes_;
};

std::vector<std::string> uuids_of(const LoadedProblem& problem) {
  std::vector<std::string> uuids;
  for (const auto& workload : problem.workloads) uuids.push_back(workload.uuid);
  return uuids;
}

bool is_pattern(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

}  // namespace

Status ProblemLibrary::add(const std::filesystem::path& trace_set) {
  FIXIT_ASSIGN_OR_RETURN(auto loaded, load_trace_set(trace_set));
  for (auto& problem : loaded) {
    for (const auto& known : problems_)
      if (known.definition.name == problem.definition.name)
        return Status(ErrorCode::kInvalid,
                      fmt::format("definition `{}` stands in two trace sets, {} and {}",
                                  problem.definition.name, known.root.string(), trace_set.string()));
    problems_.push_back(std::move(problem));
  }
  std::sort(problems_.begin(), problems_.end(), [](const LoadedProblem& a, const LoadedProblem& b) {
    return a.definition.name < b.definition.name;
  });
  return {};
}

std::vector<std::string> ProblemLibrary::names() const {
  std::vector<std::string> names;
  for (const auto& problem : problems_) names.push_back(problem.definition.name);
  return names;
}

Status ProblemLibrary::choose(const ProblemSelector& selector, const std::string& where,
                              std::vector<Chosen>& chosen, std::vector<std::string>& warnings) const {
  bool matched = false;
  bool found_workload = false;
  std::vector<std::string> uuids_seen;
  for (size_t i = 0; i < problems_.size(); ++i) {
    const LoadedProblem& problem = problems_[i];
    if (!name_matches(selector.pattern, problem.definition.name)) continue;
    matched = true;
    const auto all = uuids_of(problem);
    uuids_seen.insert(uuids_seen.end(), all.begin(), all.end());
    std::set<std::string> wanted(all.begin(), all.end());
    if (!selector.workload.empty()) {
      if (!wanted.contains(selector.workload)) continue;
      wanted = {selector.workload};
    }
    if (wanted.empty()) {
      const std::string what = fmt::format("definition `{}` has no workload", problem.definition.name);
      if (!is_pattern(selector.pattern))
        return Status(ErrorCode::kInvalid, where + ": " + what + "; add one to workloads/ of its trace set");
      warnings.push_back(where + ": " + what + " and is left out");
      continue;
    }
    found_workload = true;
    const auto known =
        std::find_if(chosen.begin(), chosen.end(), [&](const Chosen& c) { return c.problem == i; });
    if (known == chosen.end())
      chosen.push_back({i, std::move(wanted)});
    else
      known->uuids.merge(wanted);
  }
  if (!matched)
    return Status(
        ErrorCode::kInvalid,
        fmt::format("{}: `{}` matches no definition{}; the trace sets have: {}", where, selector.pattern,
                    suggestion(selector.pattern, names()), fmt::join(names(), ", ")));
  if (!found_workload && !selector.workload.empty())
    return Status(ErrorCode::kInvalid,
                  fmt::format("{}: `{}` has no workload {}; there are: {}", where, selector.pattern,
                              selector.workload, fmt::join(uuids_seen, ", ")));
  if (!found_workload)
    return Status(ErrorCode::kInvalid, where + ": no definition that matches has a workload");
  return {};
}

Status ProblemLibrary::freeze(const std::vector<ProblemSelector>& selectors, const WhereIs& where,
                              FrozenResult& result) const {
  std::vector<Chosen> chosen;
  for (size_t i = 0; i < selectors.size(); ++i)
    FIXIT_RETURN_IF_ERROR(
        choose(selectors[i], where(fmt::format("problems[{}]", i)), chosen, result.warnings));
  for (const auto& [index, uuids] : chosen) {
    const LoadedProblem& problem = problems_[index];
    FrozenProblem frozen{
        .name = problem.definition.name, .definition = problem.definition_json, .workloads = {}};
    WorkloadFreezer freezer(problem, result.blobs);
    for (size_t i = 0; i < problem.workloads.size(); ++i) {
      const Workload& workload = problem.workloads[i];
      if (!uuids.contains(workload.uuid)) continue;
      FIXIT_ASSIGN_OR_RETURN(auto frozen_workload, freezer.freeze(i));
      frozen.workloads.push_back(std::move(frozen_workload));
      if (!workload.outputs.empty() && workload.outputs.size() < problem.definition.outputs.size())
        result.warnings.push_back(fmt::format(
            "{}: workload {} stores {} of {} expected outputs; a reference has to give the others",
            frozen.name, workload.uuid, workload.outputs.size(), problem.definition.outputs.size()));
    }
    result.sweep.problems.push_back(std::move(frozen));
  }
  return {};
}

}  // namespace fixit

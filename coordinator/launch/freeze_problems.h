// Problems of a sweep: found in its trace sets, chosen by its selectors, frozen with their tensors.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/launch/launch.h"
#include "core/trace/trace_set.h"

namespace fixit {

// Begins an error about a key of the sweep file: "sweep.yaml:3: problems[0]".
using WhereIs = std::function<std::string(const std::string& key)>;

// All definitions of the sweep's trace sets; one that stands in two sets is an error.
class ProblemLibrary {
 public:
  Status add(const std::filesystem::path& trace_set);
  // In the order of the selectors, then of names; each problem once, with the union of its chosen workloads.
  Status freeze(const std::vector<ProblemSelector>& selectors, const WhereIs& where,
                FrozenResult& result) const;

 private:
  struct Chosen {
    size_t problem;
    std::set<std::string> uuids;
  };
  Status choose(const ProblemSelector& selector, const std::string& where, std::vector<Chosen>& chosen,
                std::vector<std::string>& warnings) const;
  std::vector<std::string> names() const;

  std::vector<LoadedProblem> problems_;
};

}  // namespace fixit

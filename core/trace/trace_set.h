// A folder of problems in FlashInfer-Trace form: definitions/**/*.json, workloads/**/*.jsonl, blob/.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/trace/definition.h"

namespace fixit {

struct LoadedProblem {
  Definition definition;
  std::string definition_json;  // as in the file
  std::vector<Workload> workloads;
  std::vector<std::string> workload_jsons;  // parallel to workloads: bare workload documents
  std::filesystem::path root;               // of its trace set: stored tensors' paths are relative to it
};

// Loads all of a trace set. Duplicate definition names or workload uuids, workloads of unknown definitions
// and invalid files are errors that name file, line and field.
Result<std::vector<LoadedProblem>> load_trace_set(const std::filesystem::path& root);

}  // namespace fixit

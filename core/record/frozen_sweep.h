// A sweep with everything it depends on, fixed at launch: what runs later cannot differ from what was
// planned.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/codec.h"
#include "core/base/hash.h"
#include "core/config/gpu_config.h"
#include "core/config/model_config.h"
#include "core/config/recipe_config.h"
#include "core/config/sweep_config.h"

namespace fixit {

struct FrozenWorkload {
  std::string uuid;
  std::string json;                         // the workload as one FlashInfer-Trace JSON document
  std::map<std::string, BlobHash> tensors;  // safetensors path in the workload -> blob of the whole file
  FIXIT_FIELDS(uuid, json, tensors);
};

struct FrozenProblem {
  std::string name;        // the definition's name
  std::string definition;  // FlashInfer-Trace JSON, key order kept
  std::vector<FrozenWorkload> workloads;
  FIXIT_FIELDS(name, definition, workloads);
};

struct FrozenPack {
  std::string name;
  std::string text;  // the fragments in order, as the system message has them
  std::map<std::string, std::string>
      headers;                        // header name -> content, placed beside the candidate when compiled
  std::vector<std::string> problems;  // patterns; empty: all
  BlobHash hash;                      // of text and headers
  FIXIT_FIELDS(name, text, headers, problems, hash);
};

struct FrozenModel {
  ModelConfig config;
  BlobHash replies;  // replay: blob with a msgpack map slot -> RecordedReply; empty for live providers
  FIXIT_FIELDS(config, replies);
};

struct FrozenSweep {
  int version = 1;
  SweepConfig sweep;
  std::vector<FrozenProblem> problems;
  std::vector<FrozenModel> models;  // the sweep's models, then teachers that only the recipe names
  std::vector<GpuConfig> gpus;
  std::vector<FrozenPack> packs;
  std::optional<RecipeConfig> recipe;
  BlobHash evaluate_source;  // an evaluate sweep's one kernel; then models and packs are empty
  int64_t launched_ms = 0;   // not part of hash()
  FIXIT_FIELDS(version, sweep, problems, models, gpus, packs, recipe, evaluate_source, launched_ms);

  // Of everything but `launched_ms`: relaunching with another hash under the same name is a conflict.
  BlobHash hash() const;
};

// A recorded reply of a replay model.
struct RecordedReply {
  std::string text;
  std::string reasoning;               // empty: none
  std::string finish_reason = "stop";  // "length": cut by the token limit
  FIXIT_FIELDS(text, reasoning, finish_reason);
};

FIXIT_EXTERN_CODEC(FrozenSweep)

}  // namespace fixit

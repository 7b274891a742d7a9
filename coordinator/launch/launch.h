// From a sweep file to jobs: validate, freeze, plan.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/queue/job_queue.h"
#include "core/record/frozen_sweep.h"
#include "core/trace/definition.h"

namespace fixit {

struct SweepBlobs {  // what a frozen sweep refers to by hash and must be in the store before launch
  std::map<BlobHash, std::string> bytes;
};

struct FrozenResult {
  FrozenSweep sweep;
  SweepBlobs blobs;
  std::vector<std::string> warnings;
};

// Loads and checks everything that the sweep names: trace sets, problems (patterns that match nothing are
// errors with suggestions), models, GPUs, packs, recipe and its teachers, recorded replies, stored tensors.
// Errors name file:line.
Result<FrozenResult> freeze_sweep(const std::filesystem::path& sweep_file);

// An evaluate sweep of one kernel, `source` being its text: `fixit eval`. An empty `trace_set` is
// configs/traces/cpu. Files are looked for as for a sweep file of the working folder.
Result<FrozenResult> freeze_evaluation(const std::string& source, const std::string& problem,
                                       const std::string& gpu, const std::filesystem::path& trace_set);

struct PlannedJob {
  Lane lane;
  NewJob job;
};
// Whether the pack is for the problem: its patterns match, or it has none.
bool pack_applies(const FrozenPack& pack, const std::string& problem);

// Every rollout (or evaluate) job of the sweep, in a stable order: problem, model, GPU, pack, sample.
std::vector<PlannedJob> plan_jobs(const FrozenSweep& sweep);

// The axes of any job of a sweep by name.
JobAxes axes_of(const FrozenSweep& sweep, const std::string& job, const JobPayload& payload);

// What `launch --dry-run` prints: counts per axis, jobs per lane, at most how many model calls and tokens and
// how much money, what is stored. As text for people, and as JSON.
std::string describe_plan(const FrozenSweep& sweep);
Json plan_to_json(const FrozenSweep& sweep);

}  // namespace fixit

#include <algorithm>

#include "coordinator/launch/launch.h"
#include "core/config/config_files.h"

namespace fixit {
namespace {

PlannedJob planned(Lane lane, std::string id, const JobPayload& payload) {
  return {.lane = std::move(lane), .job = {.id = std::move(id), .payload = encode(payload)}};
}

std::vector<PlannedJob> plan_evaluations(const FrozenSweep& sweep) {
  std::vector<PlannedJob> jobs;
  for (size_t problem = 0; problem < sweep.problems.size(); ++problem)
    for (size_t gpu = 0; gpu < sweep.gpus.size(); ++gpu) {
      JobPayload payload;
      payload.kind = JobKind::kEvaluate;
      payload.problem = static_cast<int>(problem);
      payload.gpu = static_cast<int>(gpu);
      payload.origin.emplace().failed_source = sweep.evaluate_source;
      const std::string& gpu_name = sweep.gpus[gpu].name;
      jobs.push_back(planned({"none", gpu_name},
                             job_id(sweep.sweep.name, JobKind::kEvaluate, sweep.problems[problem].name, "",
                                    gpu_name, "", 0, payload.origin),
                             payload));
    }
  return jobs;
}

// The name at `index` of a list, empty for -1 and for what lies outside: payloads come back from Redis.
template <typename List, typename Name>
std::string name_at(const List& list, int index, const Name& name) {
  return index < 0 || static_cast<size_t>(index) >= list.size() ? std::string()
                                                                : name(list[static_cast<size_t>(index)]);
}

}  // namespace

bool pack_applies(const FrozenPack& pack, const std::string& problem) {
  return pack.problems.empty() ||
         std::any_of(pack.problems.begin(), pack.problems.end(),
                     [&](const std::string& pattern) { return name_matches(pattern, problem); });
}

std::vector<PlannedJob> plan_jobs(const FrozenSweep& sweep) {
  if (!sweep.evaluate_source.empty()) return plan_evaluations(sweep);
  std::vector<PlannedJob> jobs;
  // Teachers that only the recipe names stand after the sweep's own models and roll nothing out.
  const size_t models = std::min(sweep.models.size(), sweep.sweep.models.size());
  for (size_t problem = 0; problem < sweep.problems.size(); ++problem)
    for (size_t model = 0; model < models; ++model)
      for (size_t gpu = 0; gpu < sweep.gpus.size(); ++gpu)
        for (size_t pack = 0; pack < sweep.packs.size(); ++pack) {
          const std::string& problem_name = sweep.problems[problem].name;
          if (!pack_applies(sweep.packs[pack], problem_name)) continue;
          const std::string& model_name = sweep.models[model].config.name;
          const std::string& gpu_name = sweep.gpus[gpu].name;
          for (int sample = 0; sample < sweep.sweep.samples; ++sample) {
            JobPayload payload;
            payload.kind = JobKind::kRollout;
            payload.problem = static_cast<int>(problem);
            payload.model = static_cast<int>(model);
            payload.gpu = static_cast<int>(gpu);
            payload.pack = static_cast<int>(pack);
            payload.sample = sample;
            jobs.push_back(planned({model_name, gpu_name},
                                   job_id(sweep.sweep.name, JobKind::kRollout, problem_name, model_name,
                                          gpu_name, sweep.packs[pack].name, sample, std::nullopt),
                                   payload));
          }
        }
  return jobs;
}

JobAxes axes_of(const FrozenSweep& sweep, const std::string& job, const JobPayload& payload) {
  JobAxes axes;
  axes.sweep = sweep.sweep.name;
  axes.job = job;
  axes.kind = payload.kind;
  axes.problem = name_at(sweep.problems, payload.problem, [](const FrozenProblem& p) { return p.name; });
  axes.model = name_at(sweep.models, payload.model, [](const FrozenModel& m) { return m.config.name; });
  axes.gpu = name_at(sweep.gpus, payload.gpu, [](const GpuConfig& g) { return g.name; });
  axes.pack = name_at(sweep.packs, payload.pack, [](const FrozenPack& p) { return p.name; });
  axes.pack_hash = name_at(sweep.packs, payload.pack, [](const FrozenPack& p) { return p.hash; });
  axes.sample = payload.sample;
  return axes;
}

}  // namespace fixit

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "coordinator/launch/launch.h"

namespace fixit {
namespace {

// Upper bounds: every trajectory takes all its turns, every call fills the model's context window.
struct Limits {
  int64_t calls = 0;
  int64_t tokens = 0;
  double usd = 0;

  void add(const ModelConfig& model, int64_t model_calls) {
    const auto window = static_cast<double>(model.context_window);
    const auto completion = static_cast<double>(std::min(model.max_tokens, model.context_window));
    const double prompt_price = model.usd_per_million_prompt;
    const double all_prompt = window * prompt_price;
    const double longest_reply =
        (window - completion) * prompt_price + completion * model.usd_per_million_completion;
    calls += model_calls;
    tokens += model_calls * model.context_window;
    usd += static_cast<double>(model_calls) * std::max(all_prompt, longest_reply) / 1e6;
  }
};

struct ChainLimits {
  int64_t failures = 0;
  int64_t repair_calls = 0;
  int64_t rationale_calls = 0;
};

const ModelConfig* model_named(const FrozenSweep& sweep, const std::string& name) {
  for (const auto& model : sweep.models)
    if (model.config.name == name) return &model.config;
  return nullptr;
}

ChainLimits chain_limits(const FrozenSweep& sweep, int64_t jobs) {
  const RecipeConfig& recipe = *sweep.recipe;
  ChainLimits limits;
  limits.failures = jobs * std::min(sweep.sweep.turns, recipe.failures.max_turn + 1);
  if (recipe.per_definition > 0)
    limits.failures = std::min<int64_t>(
        limits.failures, int64_t{recipe.per_definition} * static_cast<int64_t>(sweep.problems.size()));
  limits.repair_calls = limits.failures * recipe.repair.turns;
  // A rationale is written, and rewritten once, for each kept repair.
  limits.rationale_calls = 2 * limits.failures * (recipe.repair.keep == "all" ? recipe.repair.turns : 1);
  return limits;
}

Json limits_to_json(const Limits& limits) {
  return Json{{"model_calls", limits.calls}, {"tokens", limits.tokens}, {"usd", limits.usd}};
}

Json chain_to_json(const FrozenSweep& sweep, const ChainLimits& chain) {
  Limits limits;
  if (const auto* model = model_named(sweep, sweep.recipe->repair.model))
    limits.add(*model, chain.repair_calls);
  if (const auto* model = model_named(sweep, sweep.recipe->rationale.model))
    limits.add(*model, chain.rationale_calls);
  return Json{{"recipe", sweep.recipe->name},
              {"repair_model", sweep.recipe->repair.model},
              {"rationale_model", sweep.recipe->rationale.model},
              {"failures", chain.failures},
              {"repair_calls", chain.repair_calls},
              {"rationale_calls", chain.rationale_calls},
              {"at_most", limits_to_json(limits)}};
}

Json axes_to_json(const FrozenSweep& sweep) {
  Json axes{{"problems", Json::array()},
            {"models", sweep.sweep.models},
            {"gpus", sweep.sweep.gpus},
            {"packs", Json::array()}};
  for (const auto& problem : sweep.problems) {
    Json uuids = Json::array();
    for (const auto& workload : problem.workloads) uuids.push_back(workload.uuid);
    axes["problems"].push_back(Json{{"name", problem.name}, {"workloads", std::move(uuids)}});
  }
  for (const auto& pack : sweep.packs)
    axes["packs"].push_back(Json{{"name", pack.name}, {"hash", pack.hash}, {"bytes", pack.text.size()}});
  axes["samples"] = sweep.sweep.samples;
  return axes;
}

Json stored_to_json(const FrozenSweep& sweep) {
  size_t tensors = 0, replies = 0;
  for (const auto& problem : sweep.problems)
    for (const auto& workload : problem.workloads) tensors += workload.tensors.size();
  for (const auto& model : sweep.models) replies += model.replies.empty() ? 0 : 1;
  return Json{
      {"tensor_files", tensors}, {"recordings", replies}, {"sources", sweep.evaluate_source.empty() ? 0 : 1}};
}

}  // namespace

Json plan_to_json(const FrozenSweep& sweep) {
  const std::vector<PlannedJob> jobs = plan_jobs(sweep);
  std::map<std::string, int64_t> lanes;
  std::map<std::string, int64_t> by_model;
  for (const auto& job : jobs) {
    ++lanes[job.lane.name()];
    ++by_model[job.lane.model];
  }
  Limits limits;
  for (const auto& [name, count] : by_model)
    if (const auto* model = model_named(sweep, name)) limits.add(*model, count * sweep.sweep.turns);
  Json plan{{"sweep", sweep.sweep.name}, {"hash", sweep.hash()}, {"axes", axes_to_json(sweep)}};
  plan["turns"] = sweep.sweep.turns;
  plan["target_speedup"] = sweep.sweep.target_speedup;
  plan["priority"] = sweep.sweep.priority;
  plan["budget"] = Json{{"tokens", sweep.sweep.budget.tokens}, {"usd", sweep.sweep.budget.usd}};
  plan["jobs"] = jobs.size();
  plan["lanes"] = lanes;
  plan["at_most"] = limits_to_json(limits);
  if (sweep.recipe)
    plan["chain"] = chain_to_json(sweep, chain_limits(sweep, static_cast<int64_t>(jobs.size())));
  plan["stored"] = stored_to_json(sweep);
  return plan;
}

std::string describe_plan(const FrozenSweep& sweep) {
  const Json plan = plan_to_json(sweep);
  const auto limits = [](const Json& at_most) {
    return fmt::format("at most {} model calls, {} tokens, {:.2f} USD", at_most["model_calls"].get<int64_t>(),
                       at_most["tokens"].get<int64_t>(), at_most["usd"].get<double>());
  };
  std::string text = fmt::format("sweep {} ({}): {} jobs\n", sweep.sweep.name, sweep.hash().substr(0, 12),
                                 plan["jobs"].get<int64_t>());
  text += fmt::format(
      "  {} problems x {} models x {} GPUs x {} packs x {} samples, up to {} turns to speedup {}\n",
      sweep.problems.size(), sweep.sweep.models.size(), sweep.gpus.size(), sweep.packs.size(),
      sweep.sweep.samples, sweep.sweep.turns, sweep.sweep.target_speedup);
  for (const auto& problem : sweep.problems)
    text += fmt::format("  problem {}: {} workloads\n", problem.name, problem.workloads.size());
  for (const auto& pack : sweep.packs)
    text +=
        fmt::format("  pack {}: {} bytes, {} headers\n", pack.name, pack.text.size(), pack.headers.size());
  for (const auto& [lane, count] : plan["lanes"].items())
    text += fmt::format("  lane {}: {} jobs\n", lane, count.get<int64_t>());
  text += "  " + limits(plan["at_most"]) + "\n";
  const auto& budget = sweep.sweep.budget;
  if (budget.tokens > 0) text += fmt::format("  budget: {} tokens\n", budget.tokens);
  if (budget.usd > 0) text += fmt::format("  budget: {:.2f} USD\n", budget.usd);
  if (sweep.recipe)
    text += fmt::format("  then recipe {}: at most {} failures to repair; {}\n", sweep.recipe->name,
                        plan["chain"]["failures"].get<int64_t>(), limits(plan["chain"]["at_most"]));
  return text;
}

}  // namespace fixit

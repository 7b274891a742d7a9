// fixit launch: validate, print the plan, enqueue, and with --wait show progress and the outcome.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "coordinator/cli/command_context.h"
#include "coordinator/cli/launch_client.h"
#include "coordinator/cli/progress.h"
#include "coordinator/local/local_stack.h"
#include "coordinator/report/outcome.h"

namespace fixit {
namespace {

struct LaunchFlags {
  std::string sweep;
  bool dry_run = false;
  bool wait = false;
  bool local = false;
  bool json = false;
  SiteFlags site;
};

std::vector<std::pair<std::string, std::string>> places_of(const SiteConfig& site,
                                                           const SweepOutcome& outcome) {
  std::vector<std::pair<std::string, std::string>> places;
  if (outcome.dataset) places.emplace_back("rows", (site.datasets() / outcome.sweep / "rows.jsonl").string());
  places.emplace_back("journal", site.journal().string());
  places.emplace_back("store", site.store().string());
  places.emplace_back("logs", site.run().string());
  return places;
}

Status print_outcome(const SiteConfig& site, const FrozenSweep& sweep, const Launched& launched, bool json) {
  FIXIT_ASSIGN_OR_RETURN(const SweepOutcome outcome, read_outcome(site.journal(), sweep.sweep.name));
  if (json)
    print_json(Json{{"sweep", sweep.sweep.name},
                    {"launched", to_json(launched)},
                    {"outcome", to_json(outcome)},
                    {"data", site.data.string()}});
  else
    std::printf("\n%s", outcome_table(outcome, places_of(site, outcome)).c_str());
  if (!outcome.failed.empty())
    return Status(ErrorCode::kInternal,
                  fmt::format("{} jobs failed; {}", outcome.failed.size(), outcome.failed.front()));
  return {};
}

Status launch(const LaunchFlags& flags) {
  FIXIT_ASSIGN_OR_RETURN(const FrozenResult frozen, freeze_sweep(flags.sweep));
  for (const std::string& warning : frozen.warnings)
    std::fprintf(stderr, "fixit: warning: %s\n", warning.c_str());
  if (flags.dry_run) {
    if (flags.json)
      print_json(plan_to_json(frozen.sweep));
    else
      std::printf("%s", describe_plan(frozen.sweep).c_str());
    return {};
  }
  std::fprintf(stderr, "%s", describe_plan(frozen.sweep).c_str());

  FIXIT_ASSIGN_OR_RETURN(SiteConfig site, flags.site.load());
  std::unique_ptr<LocalStack> stack;
  if (flags.local) {
    LocalStack::Options options;
    options.site = site;
    if (frozen.sweep.gpus.size() != 1 || frozen.sweep.gpus[0].target != TargetKind::kCpu)
      return Status(ErrorCode::kUnsupported,
                    "--local runs sweeps of one CPU target; this one names other GPUs");
    options.gpu = frozen.sweep.gpus[0].name;
    FIXIT_ASSIGN_OR_RETURN(stack, LocalStack::start(std::move(options)));
    site = stack->site();
  }
  const auto check = [&] { return stack ? stack->check() : Status(); };
  FIXIT_ASSIGN_OR_RETURN(CoordinatorLink link, CoordinatorLink::open(site));
  FIXIT_ASSIGN_OR_RETURN(const Launched launched, send_launch(*link.client, frozen, check));
  std::fprintf(stderr, "launched %s: %lld jobs, %lld new, %lld known before\n",
               frozen.sweep.sweep.name.c_str(), static_cast<long long>(launched.jobs),
               static_cast<long long>(launched.enqueued), static_cast<long long>(launched.known));
  if (!flags.wait) {
    if (flags.json) print_json(Json{{"sweep", frozen.sweep.sweep.name}, {"launched", to_json(launched)}});
    return {};
  }
  Registry registry(*link.redis);
  FIXIT_ASSIGN_OR_RETURN(const SweepState state, watch_until_done(registry, frozen.sweep.sweep.name, check));
  link.client.reset();
  stack.reset();  // before the table, so that what it says of the disk is final
  if (state.phase == "failed")
    return Status(ErrorCode::kInternal, "sweep " + state.name + " failed: " + state.error);
  return print_outcome(site, frozen.sweep, launched, flags.json);
}

}  // namespace

void add_launch_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("launch", "Validate a sweep, print its plan, enqueue its jobs");
  auto flags = std::make_shared<LaunchFlags>();
  command->add_option("sweep", flags->sweep, "Sweep file (YAML)")->required();
  command->add_flag("--dry-run", flags->dry_run,
                    "Print the plan and its size; enqueue nothing, connect to nothing");
  command->add_flag("--wait", flags->wait,
                    "Show progress until the sweep and its dataset are done, then the outcome");
  command->add_flag(
      "--local", flags->local,
      "Start a private redis-server, coordinator, worker and profiler for this command (with --wait)");
  command->add_flag("--json", flags->json, "Print one JSON document on stdout");
  flags->site.add_to(*command);
  command->callback([flags, &exit_code] {
    if (flags->local && !flags->wait && !flags->dry_run) {
      std::fprintf(stderr, "fixit: --local stops what it started when it ends, so it needs --wait\n");
      exit_code = kExitUsage;
      return;
    }
    const Status status = launch(*flags);
    if (!status.ok()) exit_code = report_failure(status, flags->json);
  });
}

}  // namespace fixit

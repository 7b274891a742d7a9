// fixit eval: one kernel through compile, checks and profile.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "coordinator/cli/command_context.h"
#include "coordinator/cli/launch_client.h"
#include "coordinator/local/local_stack.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/wire/remote_store.h"

namespace fixit {
namespace {

struct EvalFlags {
  std::string source;
  std::string problem;
  std::string gpu = "cpu";
  std::string trace_set;
  bool fresh = false;
  bool json = false;
  SiteFlags site;
};

// A data folder for this one run, removed afterwards.
class ScratchData {
 public:
  explicit ScratchData(bool wanted) {
    if (wanted) path_ = std::filesystem::temp_directory_path() / ("fixit-eval-" + random_hex(6));
  }
  ~ScratchData() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Evaluated {
  TurnRecord turn;
  std::string compile_log;
};

Result<Evaluated> evaluate(const FrozenResult& frozen, const SiteConfig& site,
                           const std::function<Status()>& check) {
  constexpr int64_t kTimeoutMs = 3600000;
  constexpr int64_t kBlobTimeoutMs = 60000;
  FIXIT_ASSIGN_OR_RETURN(CoordinatorLink link, CoordinatorLink::open(site));
  FIXIT_ASSIGN_OR_RETURN(const Launched launched, send_launch(*link.client, frozen, check));
  if (launched.job_ids.size() != 1)
    return Status(ErrorCode::kInternal,
                  fmt::format("one evaluate job expected, {} planned", launched.job_ids.size()));
  const JobRef ref{frozen.sweep.sweep.name, launched.job_ids[0]};
  FIXIT_ASSIGN_OR_RETURN(const Message answer, wait_for_answer(*link.client, MessageType::kAwaitJob,
                                                               encode(ref), kTimeoutMs, check));
  FIXIT_ASSIGN_OR_RETURN(const JobResult result, decode<JobResult>(answer.body));
  FIXIT_ASSIGN_OR_RETURN(const JobEndRecord end, decode<JobEndRecord>(result.end));
  if (result.turn.empty())
    return Status(ErrorCode::kInternal, fmt::format("job {} ended as {} without a verdict: {}", ref.job,
                                                    name_of(end.outcome), end.error));
  Evaluated evaluated;
  FIXIT_ASSIGN_OR_RETURN(evaluated.turn, decode<TurnRecord>(result.turn));
  if (evaluated.turn.compile && !evaluated.turn.compile->log.empty()) {
    const auto store = make_remote_store(*link.client, kBlobTimeoutMs, 0);
    FIXIT_ASSIGN_OR_RETURN(evaluated.compile_log, store->get(evaluated.turn.compile->log));
  }
  return evaluated;
}

// The verdict with `status` first, whether it was reached by the compiler or by the profiler.
Json verdict_json(const Evaluated& evaluated) {
  const TurnRecord& turn = evaluated.turn;
  Json document{{"status", std::string(name_of(turn.status))}};
  if (turn.verdict) {
    const Json verdict = to_json(*turn.verdict);
    for (const auto& [key, value] : verdict.items())
      if (key != "status") document[key] = value;
  }
  document["problem"] = turn.axes.problem;
  document["gpu"] = turn.axes.gpu;
  if (turn.compile) document["compile"] = to_json(*turn.compile);
  document["compile_log"] = evaluated.compile_log;
  return document;
}

void print_workload(const WorkloadVerdict& workload) {
  std::string axes;
  for (const auto& [name, value] : workload.axes)
    axes += fmt::format("{}{}={}", axes.empty() ? "" : " ", name, value);
  std::printf("  [%s] %s, %d calls compared\n", axes.c_str(), std::string(name_of(workload.status)).c_str(),
              workload.calls);
  if (workload.latency)
    std::printf("    latency %.4f ms (quartiles %.4f, %.4f; %d timed)%s\n", workload.latency->median_ms,
                workload.latency->q1_ms, workload.latency->q3_ms, workload.latency->samples,
                workload.noisy ? ", noisy" : "");
  if (workload.reference_latency)
    std::printf("    reference %.4f ms, speedup %.3fx\n", workload.reference_latency->median_ms,
                workload.speedup.value_or(0));
  for (const OutputComparison& output : workload.outputs) {
    std::printf("    %s: %.4f%% matched, max abs error %.3g, max rel error %.3g\n", output.name.c_str(),
                100 * output.matched_ratio, output.max_abs_error, output.max_rel_error);
    for (const Mismatch& mismatch : output.first_mismatches) {
      std::string index;
      for (const int64_t i : mismatch.index) index += fmt::format("{}{}", index.empty() ? "" : ", ", i);
      std::printf("      [%s] got %g, expected %g\n", index.c_str(), mismatch.got, mismatch.expected);
    }
  }
}

void print_verdict(const Evaluated& evaluated) {
  const TurnRecord& turn = evaluated.turn;
  std::printf("%s  %s on %s\n", std::string(name_of(turn.status)).c_str(), turn.axes.problem.c_str(),
              turn.axes.gpu.c_str());
  if (turn.compile && turn.compile->status != TurnStatus::kCorrect) {
    if (!turn.compile->check.empty())
      std::printf("  %s: %s\n", turn.compile->check.c_str(), turn.compile->evidence.c_str());
    std::printf("%s\n", evaluated.compile_log.c_str());
  }
  if (!turn.verdict) return;
  const Verdict& verdict = *turn.verdict;
  if (!verdict.check.empty()) std::printf("  %s: %s\n", verdict.check.c_str(), verdict.evidence.c_str());
  if (verdict.fault)
    std::printf("  %s%s: %s\n", verdict.fault->kind.c_str(),
                verdict.fault->where.empty() ? "" : (" (" + verdict.fault->where + ")").c_str(),
                verdict.fault->detail.c_str());
  for (const WorkloadVerdict& workload : verdict.workloads) print_workload(workload);
  std::printf("  required instructions (%s): %s%s%s\n", verdict.instructions.family.c_str(),
              std::string(name_of(verdict.instructions.verdict)).c_str(),
              verdict.instructions.reason.empty() ? "" : ", ", verdict.instructions.reason.c_str());
  std::printf("  baseline %s; isolation %s, sandbox %s%s\n", verdict.baseline.c_str(),
              verdict.isolation.c_str(), verdict.sandbox.c_str(), verdict.cached ? "; cached" : "");
}

Result<int> run_eval(const EvalFlags& flags) {
  FIXIT_ASSIGN_OR_RETURN(const std::string source, read_file(flags.source, 16u << 20));
  FIXIT_ASSIGN_OR_RETURN(const FrozenResult frozen,
                         freeze_evaluation(source, flags.problem, flags.gpu, flags.trace_set));
  for (const std::string& warning : frozen.warnings)
    std::fprintf(stderr, "fixit: warning: %s\n", warning.c_str());
  FIXIT_ASSIGN_OR_RETURN(SiteConfig site, flags.site.load());
  const ScratchData scratch(flags.fresh);
  std::unique_ptr<LocalStack> stack;
  if (site.redis == "embedded") {
    LocalStack::Options options;
    options.site = site;
    options.site.data = flags.fresh ? scratch.path() : site.data / "eval";
    options.gpu = flags.gpu;
    FIXIT_ASSIGN_OR_RETURN(stack, LocalStack::start(std::move(options)));
    site = stack->site();
  } else if (flags.fresh) {
    return Status(ErrorCode::kUnsupported,
                  "--fresh measures in a private system; leave out --redis and FIXIT_REDIS");
  }
  FIXIT_ASSIGN_OR_RETURN(const Evaluated evaluated,
                         evaluate(frozen, site, [&] { return stack ? stack->check() : Status(); }));
  if (flags.json)
    print_json(verdict_json(evaluated));
  else
    print_verdict(evaluated);
  return evaluated.turn.status == TurnStatus::kCorrect ? kExitOk : kExitFailure;
}

}  // namespace

void add_eval_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "eval", "Take one kernel through compile, checks and profile; exits 0 if it is CORRECT, else 1");
  auto flags = std::make_shared<EvalFlags>();
  command->add_option("source", flags->source, "Kernel source (C++ with extern \"C\" void run(...))")
      ->required();
  command->add_option("--problem", flags->problem, "Definition's name")->required();
  command->add_option("--gpu", flags->gpu, "GPU kind: a name in configs/gpus (default: cpu)");
  command->add_option("--trace-set", flags->trace_set,
                      "FlashInfer-Trace folder (default: configs/traces/cpu)");
  command->add_flag("--fresh", flags->fresh,
                    "Measure anew in a private system, whatever was measured before");
  command->add_flag("--json", flags->json, "Print the verdict as one JSON document on stdout, status first");
  flags->site.add_to(*command);
  command->callback([flags, &exit_code] {
    const auto result = run_eval(*flags);
    exit_code = result.ok() ? *result : report_failure(result.status(), flags->json);
  });
}

}  // namespace fixit

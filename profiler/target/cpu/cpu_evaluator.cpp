#include "profiler/target/cpu/cpu_evaluator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "core/base/file.h"
#include "profiler/measure/summary.h"
#include "profiler/target/cpu/instruction_proof.h"
#include "profiler/target/cpu/machine.h"
#include "profiler/target/cpu/object_check.h"
#include "profiler/target/cpu/workload_run.h"

namespace fixit {
namespace {

// Changes whenever a rule changes what a verdict says: checks, data, comparison, timing, proof.
constexpr int kRules = 1;

// Adds the wall time of its life to a stage.
class Stage {
 public:
  Stage(Verdict& verdict, const char* name) : verdict_(verdict), name_(name) {}
  ~Stage() {
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    verdict_.stage_ms[name_] += std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  Verdict& verdict_;
  const char* name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

uint64_t random_seed() {
  return std::stoull(random_hex(8), nullptr, 16);
}

std::filesystem::path runner_beside_this_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path() / "fixit-cpu-runner";
}

class CpuEvaluator final : public Evaluator {
 public:
  CpuEvaluator(GpuConfig gpu, std::string profiler_id, CpuEvaluatorOptions options)
      : gpu_(std::move(gpu)), profiler_id_(std::move(profiler_id)), options_(std::move(options)) {}

  Status self_test();
  const ProfilerCapability& capability() const override { return capability_; }
  Verdict evaluate(const ProfileRequest& request, BlobStore& blobs,
                   const std::atomic<bool>& cancelled) override;

 private:
  using Runs = std::vector<std::unique_ptr<WorkloadRun>>;

  Ruling judge(const ProfileRequest& request, BlobStore& blobs, const std::atomic<bool>& cancelled,
               Verdict& verdict);
  Ruling check_request(const ProfileRequest& request) const;
  Ruling check_statically(const std::string& object, Verdict& verdict) const;
  Ruling run_workloads(const ProfileRequest& request, BlobStore& blobs, Evaluation& evaluation,
                       Verdict& verdict);
  Ruling lay_out(const ProfileRequest& request, BlobStore& blobs, Evaluation& evaluation, Runs& runs) const;
  Ruling call_workloads(Evaluation& evaluation, Runs& runs, Verdict& verdict) const;
  void prove(const Evaluation& evaluation, Runs& runs, Verdict& verdict) const;
  std::string identity() const;

  GpuConfig gpu_;
  std::string profiler_id_;
  CpuEvaluatorOptions options_;
  const MatrixProduct* product_ = nullptr;
  std::string openblas_refusal_;
  std::string tracing_refusal_;
  ProfilerCapability capability_;
};

Status CpuEvaluator::self_test() {
  if (gpu_.target != TargetKind::kCpu)
    return Status(ErrorCode::kUnsupported,
                  fmt::format("gpu {}: target {} is not built into this version, only cpu", gpu_.name,
                              name_of(gpu_.target)));
  FIXIT_RETURN_IF_ERROR(check_architecture(gpu_.arch));
  FIXIT_ASSIGN_OR_RETURN(const std::vector<int> cores, target_cores(gpu_.cores));
  if (options_.runner.empty()) options_.runner = runner_beside_this_program();
  if (!std::filesystem::is_regular_file(options_.runner))
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{} is missing: install it beside fixit-profiler or name it with "
                              "--runner",
                              options_.runner.string()));
  const auto minimum = parse_enum<SandboxLevel>(gpu_.minimum_sandbox);
  if (!minimum)
    return Status(ErrorCode::kInvalid,
                  fmt::format("gpu {}: minimum_sandbox '{}' is not seccomp or namespaces+seccomp", gpu_.name,
                              gpu_.minimum_sandbox));
  const SandboxLevel level = available_sandbox_level();
  if (level < *minimum)
    return Status(ErrorCode::kDenied, fmt::format("this machine permits sandbox level {}, gpu {} asks for {}",
                                                  name_of(level), gpu_.name, gpu_.minimum_sandbox));
  product_ = &best_product(openblas_refusal_);
  if (!openblas_refusal_.empty()) spdlog::warn("OpenBLAS is not used as reference: {}", openblas_refusal_);
  const Status tracing = check_tracing();
  if (!tracing.ok()) {
    tracing_refusal_ = tracing.message();
    spdlog::warn("{}", tracing_refusal_);
  }
  capability_ = {
      gpu_.name, cpu_product_name(), identity(), "process", std::string(name_of(level)), tracing.ok(), 2};
  return {};
}

std::string CpuEvaluator::identity() const {
  return fmt::format(
      "fixit {}; cpu rules {}; reference {}{}; {} warm-up and {} timed calls, all compared by allclose "
      "with atol = rtol = {:g}",
      FIXIT_VERSION, kRules, product_->name(),
      openblas_refusal_.empty() ? "" : " (OpenBLAS refused: " + openblas_refusal_ + ")", gpu_.warmup_calls,
      gpu_.timed_calls, gpu_.tolerance);
}

Verdict CpuEvaluator::evaluate(const ProfileRequest& request, BlobStore& blobs,
                               const std::atomic<bool>& cancelled) {
  Verdict verdict;
  verdict.request_key = request.key;
  verdict.seed = options_.seed ? *options_.seed : random_seed();
  verdict.tolerance = request.target.tolerance;
  verdict.isolation = capability_.isolation;
  verdict.sandbox = capability_.sandbox;
  verdict.baseline = "none";
  verdict.environment = {capability_.device,
                         profiler_id_,
                         capability_.evaluator,
                         {{"reference", product_->name()}, {"kernel", kernel_release()}}};
  verdict.instructions.family = request.target.instruction_family;
  {
    Stage stage(verdict, "total");
    Ruling ruling = judge(request, blobs, cancelled, verdict);
    verdict.status = ruling.status;
    verdict.check = std::move(ruling.check);
    verdict.evidence = std::move(ruling.evidence);
    verdict.fault = std::move(ruling.fault);
  }
  if (verdict.status != TurnStatus::kCorrect && verdict.instructions.verdict == InstructionVerdict::kUnknown)
    verdict.instructions.reason = fmt::format("not examined: the candidate is {}", name_of(verdict.status));
  return verdict;
}

Ruling CpuEvaluator::check_request(const ProfileRequest& request) const {
  if (request.target.target != TargetKind::kCpu)
    return Ruling::infra("request", fmt::format("target {} came to a profiler of the CPU target",
                                                name_of(request.target.target)));
  if (request.binding != "c")
    return Ruling::infra(
        "request", fmt::format("binding '{}' is not supported on the CPU target, only c", request.binding));
  if (const Status arch = check_architecture(request.target.arch); !arch.ok())
    return Ruling::infra("target", arch.message());
  if (!parse_enum<SandboxLevel>(request.target.minimum_sandbox))
    return Ruling::infra("request", "minimum_sandbox: unknown level " + request.target.minimum_sandbox);
  return {};
}

Ruling CpuEvaluator::check_statically(const std::string& object, Verdict& verdict) const {
  Stage stage(verdict, "static");
  const auto checked = check_object(object, "run");
  // Its bytes are what the compiler made (they match their hash), so an odd object is the candidate's doing.
  if (!checked.ok()) return {TurnStatus::kBanned, "object", checked.status().message(), std::nullopt};
  if (checked->allowed) return {};
  return {TurnStatus::kBanned, checked->check, checked->evidence, std::nullopt};
}

Ruling CpuEvaluator::judge(const ProfileRequest& request, BlobStore& blobs,
                           const std::atomic<bool>& cancelled, Verdict& verdict) {
  if (Ruling ruling = check_request(request); !ruling.passed()) return ruling;
  std::string object;
  {
    Stage stage(verdict, "fetch");
    auto fetched = blobs.get(request.artifact);
    if (!fetched.ok()) return Ruling::infra("artifact", fetched.status().to_string());
    object = std::move(fetched).value();
  }
  if (Ruling ruling = check_statically(object, verdict); !ruling.passed()) return ruling;
  auto definition = parse_definition(request.definition, "definition");
  if (!definition.ok()) return Ruling::infra("definition", definition.status().message());
  auto cores = target_cores(request.target.cores);
  if (!cores.ok()) return Ruling::infra("target", cores.status().message());
  const KeepOffCores keep_off(*cores);
  PinnedCrew crew(*cores);
  Evaluation evaluation{request.target, *definition, object, cancelled,
                        *product_,      crew,        *cores, options_.runner};
  evaluation.seed = verdict.seed;
  evaluation.minimum_sandbox = *parse_enum<SandboxLevel>(request.target.minimum_sandbox);
  evaluation.flops_per_cycle = flops_per_cycle_bound();
  Ruling ruling = run_workloads(request, blobs, evaluation, verdict);
  if (evaluation.sandbox) verdict.sandbox = name_of(*evaluation.sandbox);
  return ruling;
}

Ruling CpuEvaluator::lay_out(const ProfileRequest& request, BlobStore& blobs, Evaluation& evaluation,
                             Runs& runs) const {
  if (request.workloads.empty()) return Ruling::infra("workload", "the request names no workload");
  for (const FrozenWorkload& frozen : request.workloads) {
    const auto workload = parse_workload(frozen.json, "workload " + frozen.uuid);
    if (!workload.ok()) return Ruling::infra("workload", workload.status().message());
    if (const Status checked = check_workload(evaluation.definition, *workload, "workload " + frozen.uuid);
        !checked.ok())
      return Ruling::infra("workload", checked.message());
    auto run = WorkloadRun::create(evaluation, *workload, frozen, blobs);
    if (!run.ok())
      return Ruling::infra(run.status().code() == ErrorCode::kUnsupported ? "no reference" : "workload",
                           run.status().message());
    runs.push_back(std::move(run).value());
  }
  return {};
}

Ruling CpuEvaluator::run_workloads(const ProfileRequest& request, BlobStore& blobs, Evaluation& evaluation,
                                   Verdict& verdict) {
  Runs runs;
  {
    Stage stage(verdict, "lay_out");
    if (Ruling ruling = lay_out(request, blobs, evaluation, runs); !ruling.passed()) return ruling;
  }
  verdict.baseline = runs.front()->baseline();
  Ruling ruling = call_workloads(evaluation, runs, verdict);
  if (ruling.passed()) prove(evaluation, runs, verdict);
  for (const auto& run : runs) {
    if (run->verdict().status == TurnStatus::kPending) continue;  // an earlier one failed: never begun
    verdict.workloads.push_back(run->verdict());
    verdict.noisy = verdict.noisy || run->verdict().noisy;
    if (!ruling.passed() || !run->verdict().speedup) continue;
    verdict.speedup = std::min(verdict.speedup.value_or(*run->verdict().speedup), *run->verdict().speedup);
  }
  return ruling;
}

Ruling CpuEvaluator::call_workloads(Evaluation& evaluation, Runs& runs, Verdict& verdict) const {
  {
    Stage stage(verdict, "correctness");
    for (const auto& run : runs)
      if (Ruling ruling = run->check_once(); !ruling.passed()) return ruling;
  }
  Stage stage(verdict, "timing");
  const double share_ms = 1000 * evaluation.target.evaluation_deadline_s / static_cast<double>(runs.size());
  for (const auto& run : runs)
    if (Ruling ruling = run->measure(share_ms); !ruling.passed()) return ruling;
  return {};
}

void CpuEvaluator::prove(const Evaluation& evaluation, Runs& runs, Verdict& verdict) const {
  Stage stage(verdict, "instructions");
  if (!tracing_refusal_.empty()) {
    verdict.instructions.reason = tracing_refusal_;
    return;
  }
  // The smallest workload: there an exact count is most likely to end below the cap.
  const auto smallest = std::ranges::min_element(runs, {}, [](const auto& run) { return run->flops(); });
  WorkloadRun& run = **smallest;
  verdict.instructions = prove_instructions(
      evaluation.object, evaluation.target.instruction_family, run.flops(),
      [&](const std::vector<uint64_t>& offsets, uint64_t cap) { return run.count_executions(offsets, cap); });
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const GpuConfig& gpu, const std::string& profiler_id,
                                                      const CpuEvaluatorOptions& options) {
  auto evaluator = std::make_unique<CpuEvaluator>(gpu, profiler_id, options);
  FIXIT_RETURN_IF_ERROR(evaluator->self_test());
  return std::unique_ptr<Evaluator>(std::move(evaluator));
}

Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const GpuConfig& gpu, const std::string& profiler_id) {
  return make_cpu_evaluator(gpu, profiler_id, CpuEvaluatorOptions{});
}

}  // namespace fixit

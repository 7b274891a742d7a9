#include "profiler/target/cpu/workload_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "profiler/data/fill.h"
#include "profiler/measure/stopping_rule.h"
#include "profiler/measure/summary.h"

namespace fixit {
namespace {

using SteadyClock = std::chrono::steady_clock;

double elapsed_ms(SteadyClock::time_point since) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - since).count();
}

// A scalar input in the C type of its dtype.
Result<ScalarArgument> scalar_argument(const TensorSpec& input, const ScalarInput& given) {
  ScalarArgument argument{input.name, int64_t{0}};
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    return std::visit([](auto value) { return static_cast<T>(value); }, given.value);
  };
  switch (input.dtype) {
    case Dtype::kInt64:
      argument.value = as(int64_t{});
      return argument;
    case Dtype::kInt32:
      argument.value = as(int32_t{});
      return argument;
    case Dtype::kFloat32:
      argument.value = as(float{});
      return argument;
    case Dtype::kBool:
      argument.value = as(bool{});
      return argument;
    default:
      return Status(ErrorCode::kUnsupported,
                    fmt::format("scalar input {}: type {} has no C parameter on the CPU target", input.name,
                                name_of(input.dtype)));
  }
}

Ruling runtime_error(Fault fault) {
  Ruling ruling{TurnStatus::kRuntimeError, {}, fault.detail, std::nullopt};
  ruling.fault = std::move(fault);
  return ruling;
}

}  // namespace

WorkloadRun::WorkloadRun(Evaluation& evaluation, const Workload& workload, WorkloadData data)
    : evaluation_(evaluation), data_(std::move(data)) {
  verdict_.uuid = workload.uuid;
  verdict_.axes.insert(workload.axes.begin(), workload.axes.end());
  verdict_.fixed_inputs = data_.fixed();
}

Result<std::unique_ptr<WorkloadRun>> WorkloadRun::create(Evaluation& evaluation, const Workload& workload,
                                                         const FrozenWorkload& frozen, BlobStore& blobs) {
  const Definition& definition = evaluation.definition;
  FIXIT_ASSIGN_OR_RETURN(WorkloadData data, WorkloadData::load(definition, workload, frozen, blobs));
  std::unique_ptr<WorkloadRun> run(new WorkloadRun(evaluation, workload, std::move(data)));
  FIXIT_RETURN_IF_ERROR(run->lay_out(workload));
  if (run->data_.expected().empty()) {
    FIXIT_ASSIGN_OR_RETURN(run->reference_,
                           make_reference(definition, workload, evaluation.product, evaluation.crew.size()));
    return run;
  }
  if (!run->data_.fixed() || run->data_.expected().size() != definition.outputs.size())
    return Status(
        ErrorCode::kInvalid,
        fmt::format("workload {}: expected outputs are stored, which takes stored inputs and all outputs",
                    workload.uuid));
  for (Output& output : run->outputs_) {
    const std::string& stored = run->data_.expected().at(output.shape.name);
    std::memcpy(output.expected.data(), stored.data(), stored.size());
  }
  return run;
}

// Arguments of run(): inputs, outputs, then the var axes.
Status WorkloadRun::lay_out(const Workload& workload) {
  const Definition& definition = evaluation_.definition;
  size_t tensor = 0;
  for (const TensorSpec& input : definition.inputs) {
    if (input.scalar) {
      FIXIT_ASSIGN_OR_RETURN(ScalarArgument scalar,
                             scalar_argument(input, std::get<ScalarInput>(workload.inputs.at(input.name))));
      arguments_.push_back(std::move(scalar));
      continue;
    }
    inputs_.push_back(arguments_.size());
    arguments_.push_back(TensorArgument{input.name, data_.tensors()[tensor++].bytes, false});
  }
  for (const TensorSpec& spec : definition.outputs) {
    if (spec.scalar)
      return Status(ErrorCode::kUnsupported,
                    fmt::format("output {}: scalar outputs cannot be passed by value", spec.name));
    Output output;
    FIXIT_ASSIGN_OR_RETURN(output.shape, tensor_shape(definition, spec, workload));
    output.argument = arguments_.size();
    for (auto* buffer : {&output.expected, &output.previous, &output.got}) buffer->resize(output.shape.bytes);
    arguments_.push_back(TensorArgument{spec.name, output.shape.bytes, true});
    outputs_.push_back(std::move(output));
  }
  const std::vector<std::string> names = definition.var_axes();
  const std::vector<int64_t> values = var_axis_values(definition, workload);
  for (size_t axis = 0; axis < values.size(); ++axis)
    arguments_.push_back(ScalarArgument{names[axis], values[axis]});
  return {};
}

Result<std::unique_ptr<CandidateProcess>> WorkloadRun::start(bool trace, Ruling& ruling) {
  CandidateSpec spec;
  spec.object = evaluation_.object;
  spec.arguments = arguments_;
  spec.memory_bytes = static_cast<int64_t>(evaluation_.target.memory_mib) << 20;
  spec.cores = evaluation_.cores;
  spec.trace = trace;
  spec.runner = evaluation_.runner;
  auto process = CandidateProcess::start(spec);
  compared_in_process_ = 0;
  if (!process.ok()) {
    const Status& status = process.status();
    // Only the loader's refusal is the candidate's doing.
    ruling = status.code() == ErrorCode::kInvalid
                 ? runtime_error({"the object cannot be loaded", {}, status.message()})
                 : Ruling::infra(status.code() == ErrorCode::kDenied ? "sandbox" : "candidate process",
                                 status.to_string());
    return process.status();
  }
  evaluation_.sandbox = (*process)->level();
  if ((*process)->level() < evaluation_.minimum_sandbox) {
    ruling = Ruling::infra(
        "sandbox", fmt::format("level {} was reached, the target asks for {}", name_of((*process)->level()),
                               name_of(evaluation_.minimum_sandbox)));
    return Status(ErrorCode::kDenied, ruling.evidence);
  }
  return process;
}

int64_t WorkloadRun::deadline_ms() const {
  const GpuConfig& target = evaluation_.target;
  return call_deadline_ms(target.call_deadline_min_s, target.call_deadline_factor, reference_ms_);
}

void WorkloadRun::prepare(CandidateProcess& process, uint32_t call) {
  for (size_t i = 0; i < inputs_.size(); ++i)
    data_.fill(i, evaluation_.seed, call, process.tensor(inputs_[i]));
  for (Output& output : outputs_) {
    poison(output.shape.dtype, process.tensor(output.argument));
    if (!reference_) continue;
    std::swap(output.expected, output.previous);
    // The reference's outputs get the same treatment, so that its caches are no better.
    poison(output.shape.dtype, output.expected);
  }
}

double WorkloadRun::run_reference(CandidateProcess& process) {
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (const size_t argument : inputs_)
    inputs.push_back(reinterpret_cast<const float*>(process.tensor(argument).data()));
  for (Output& output : outputs_) outputs.push_back(reinterpret_cast<float*>(output.expected.data()));
  const int parts = evaluation_.crew.size();
  const int64_t elapsed_ns =
      evaluation_.crew.run([&](int part) { reference_->run(inputs, outputs, part, parts); });
  reference_ms_ = static_cast<double>(elapsed_ns) * 1e-6;
  return reference_ms_;
}

void WorkloadRun::copy_outputs(CandidateProcess& process) {
  for (Output& output : outputs_)
    std::memcpy(output.got.data(), process.tensor(output.argument).data(), output.shape.bytes);
}

Ruling WorkloadRun::call(CandidateProcess& process, bool candidate_first, CallTimes& times) {
  if (evaluation_.cancelled) return Ruling::infra("cancelled", "the request was withdrawn");
  const uint32_t call = evaluation_.next_call++;
  prepare(process, call);
  if (reference_ && !candidate_first) times.reference_ms = run_reference(process);
  const int64_t deadline = deadline_ms();
  const CallOutcome outcome = process.call(deadline);
  // At once, so that nothing that still runs there can mend the outputs.
  copy_outputs(process);
  if (Ruling ruling = after_call(process, outcome, deadline); !ruling.passed()) return ruling;
  times.candidate_ms = static_cast<double>(outcome.wall_ns) * 1e-6;
  if (reference_ && candidate_first) times.reference_ms = run_reference(process);
  return compare_outputs(call);
}

Ruling WorkloadRun::after_call(CandidateProcess& process, const CallOutcome& outcome, int64_t deadline) {
  if (outcome.kind == CallOutcome::Kind::kFault)
    return runtime_error(outcome.fault.value_or(Fault{"the process ended", {}, "no further evidence"}));
  if (outcome.kind == CallOutcome::Kind::kTimeout) {
    Ruling ruling{TurnStatus::kKernelTimeout, {}, {}, outcome.fault};
    ruling.evidence =
        fmt::format("one call took longer than {} ms (reference: {:.3f} ms)", deadline, reference_ms_);
    if (!ruling.fault) ruling.fault = Fault{"hang", {}, ruling.evidence};
    return ruling;
  }
  if (auto fault = process.check_canaries()) return runtime_error(*fault);
  if (auto evidence = process.leftover_work())
    return {TurnStatus::kRejected, "work after return", *evidence, std::nullopt};
  return {};
}

void WorkloadRun::keep_worst(OutputComparison comparison) {
  for (OutputComparison& worst : verdict_.outputs) {
    if (worst.name != comparison.name) continue;
    if (is_worse(comparison, worst)) worst = std::move(comparison);
    return;
  }
  verdict_.outputs.push_back(std::move(comparison));
}

Ruling WorkloadRun::compare_outputs(uint32_t call) {
  Ruling ruling;
  const Tolerance tolerance{evaluation_.target.tolerance, evaluation_.target.tolerance};
  for (const Output& output : outputs_) {
    auto comparison = compare_output(output.shape.name, output.shape.dtype, output.shape.sizes, output.got,
                                     output.expected, tolerance);
    if (!comparison.ok()) return Ruling::infra("workload", comparison.status().message());
    comparison->call = call;
    if (comparison->mismatched > 0 && ruling.passed()) ruling = explain_mismatch(call, output, *comparison);
    keep_worst(std::move(*comparison));
  }
  ++verdict_.calls;
  ++compared_in_process_;
  return ruling;
}

Ruling WorkloadRun::explain_mismatch(uint32_t call, const Output& output,
                                     const OutputComparison& comparison) const {
  const std::string& name = output.shape.name;
  Ruling ruling{TurnStatus::kIncorrectNumerical, "numerical",
                fmt::format("output {} of call {}: {} of {} elements differ", name, call,
                            comparison.mismatched, comparison.elements),
                std::nullopt};
  const int64_t poisoned = count_poison(output.shape.dtype, output.got);
  if (poisoned > 0) ruling.evidence += fmt::format("; {} elements were not written at all", poisoned);
  const bool was_right = compared_in_process_ > 0;
  if (!was_right || data_.fixed()) return ruling;
  // Right before and wrong now: stale only where the output itself shows it.
  const auto stale = [&](std::string evidence) {
    return Ruling{TurnStatus::kRejected, "stale or cached output", std::move(evidence), std::nullopt};
  };
  if (poisoned == comparison.elements)
    return stale(
        fmt::format("output {} of call {} was not written, after {} correct calls of the same process", name,
                    call, compared_in_process_));
  const Tolerance tolerance{evaluation_.target.tolerance, evaluation_.target.tolerance};
  const auto earlier =
      compare_output(name, output.shape.dtype, output.shape.sizes, output.got, output.previous, tolerance);
  if (earlier.ok() && earlier->mismatched == 0)
    return stale(
        fmt::format("output {} of call {} is the right one for the inputs of the call before", name, call));
  return ruling;
}

Ruling WorkloadRun::finish(Ruling ruling) {
  verdict_.status = ruling.status;
  return ruling;
}

Ruling WorkloadRun::check_once() {
  Ruling ruling;
  auto process = start(false, ruling);
  if (!process.ok()) return finish(std::move(ruling));
  CallTimes times;
  return finish(call(**process, false, times));
}

Ruling WorkloadRun::measure(double budget_ms) {
  Ruling ruling;
  auto process = start(false, ruling);
  if (!process.ok()) return finish(std::move(ruling));
  const GpuConfig& target = evaluation_.target;
  const StoppingRule rule({target.warmup_calls, target.timed_calls, kMinSamples, budget_ms});
  const auto begin = SteadyClock::now();
  CallTimes times;
  for (int done = 0; rule.more_warmups(done, elapsed_ms(begin)); ++done)
    if (ruling = call(**process, done % 2 == 1, times); !ruling.passed()) return finish(std::move(ruling));
  std::vector<double> candidate_ms, reference_ms;
  for (int done = 0; rule.more_timed(done, elapsed_ms(begin)); ++done) {
    // The order alternates, so that neither side always finds the other's data in the caches.
    if (ruling = call(**process, done % 2 == 1, times); !ruling.passed()) return finish(std::move(ruling));
    candidate_ms.push_back(times.candidate_ms);
    if (times.reference_ms) reference_ms.push_back(*times.reference_ms);
  }
  return finish(summarize_calls(candidate_ms, reference_ms));
}

Ruling WorkloadRun::summarize_calls(const std::vector<double>& candidate_ms,
                                    const std::vector<double>& reference_ms) {
  verdict_.latency = summarize(candidate_ms);
  verdict_.noisy = is_noisy(*verdict_.latency);
  const double median = verdict_.latency->median_ms;
  const double floor = physics_floor_ms(flops(), evaluation_.crew.size(), evaluation_.flops_per_cycle);
  if (median < floor)
    return {
        TurnStatus::kRejected, "physics floor",
        fmt::format("median {:.6f} ms; {:.3g} floating point operations take at least {:.6f} ms on {} cores",
                    median, flops(), floor, evaluation_.crew.size()),
        std::nullopt};
  if (!reference_) return {};
  verdict_.reference_latency = summarize(reference_ms);
  verdict_.noisy = verdict_.noisy || is_noisy(*verdict_.reference_latency);
  if (median > 0) verdict_.speedup = verdict_.reference_latency->median_ms / median;
  return {};
}

Result<CandidateProcess::TraceCounts> WorkloadRun::count_executions(const std::vector<uint64_t>& offsets,
                                                                    uint64_t cap) {
  constexpr int64_t kTracedCallMs = 10000;  // breakpoints cost about ten microseconds each
  if (evaluation_.cancelled) return Status(ErrorCode::kCancelled, "the request was withdrawn");
  Ruling ruling;
  auto process = start(true, ruling);
  if (!process.ok()) return process.status();
  const uint32_t call = evaluation_.next_call++;
  prepare(**process, call);
  if (reference_) run_reference(**process);
  auto counts = (*process)->call_counting(offsets, cap, deadline_ms() + kTracedCallMs);
  if (!counts.ok()) return counts;
  if (counts->outcome.kind != CallOutcome::Kind::kReturned)
    return Status(ErrorCode::kTimeout,
                  counts->outcome.fault
                      ? fmt::format("the traced call ended with: {} ({})", counts->outcome.fault->kind,
                                    counts->outcome.fault->detail)
                      : std::string("the traced call did not return in time"));
  copy_outputs(**process);
  if (ruling = compare_outputs(call); !ruling.passed())
    return Status(ErrorCode::kInvalid, "the traced call's result is wrong: " + ruling.evidence);
  return counts;
}

}  // namespace fixit

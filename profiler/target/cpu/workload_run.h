// One workload of an evaluation: its tensors, its reference, and the calls made on fresh data.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/gpu_config.h"
#include "profiler/compare/compare.h"
#include "profiler/data/workload_data.h"
#include "profiler/reference/pinned_crew.h"
#include "profiler/reference/reference.h"
#include "profiler/target/cpu/candidate_process.h"
#include "profiler/target/cpu/ruling.h"

namespace fixit {

// What all workloads of an evaluation share. Lives as long as they do.
struct Evaluation {
  const GpuConfig& target;
  const Definition& definition;
  const std::string& object;
  const std::atomic<bool>& cancelled;
  const MatrixProduct& product;
  PinnedCrew& crew;
  std::vector<int> cores;
  std::filesystem::path runner;
  uint64_t seed = 0;
  SandboxLevel minimum_sandbox = SandboxLevel::kSeccomp;
  double flops_per_cycle = 64;
  uint32_t next_call = 0;  // calls are numbered through the whole evaluation: no data is seen twice
  std::optional<SandboxLevel> sandbox;  // reached by the processes so far
};

// Expected outputs live here, in the supervisor, and nowhere else. Not thread-safe.
class WorkloadRun {
 public:
  // kUnsupported, check "no reference", where nothing says what is right; kInvalid where the workload is
  // faulty.
  static Result<std::unique_ptr<WorkloadRun>> create(Evaluation& evaluation, const Workload& workload,
                                                     const FrozenWorkload& frozen, BlobStore& blobs);

  // A process of its own, one call on fresh data, everything compared.
  Ruling check_once();
  // A fresh process: warm-ups and timed calls until the stopping rule ends them; `budget_ms` is for all of
  // them.
  Ruling measure(double budget_ms);
  // A fresh traced process, one call under breakpoints; the output is compared too. An error says why the
  // count is not to be trusted.
  Result<CandidateProcess::TraceCounts> count_executions(const std::vector<uint64_t>& offsets, uint64_t cap);

  const WorkloadVerdict& verdict() const { return verdict_; }
  double flops() const { return reference_ ? reference_->flops() : 0; }  // 0: unknown
  std::string baseline() const { return reference_ ? reference_->baseline() : "none"; }

 private:
  struct Output {
    TensorShape shape;
    size_t argument = 0;              // in the candidate's arguments
    std::vector<std::byte> expected;  // of the current call
    std::vector<std::byte> previous;  // of the call before, to recognise stale results
    std::vector<std::byte> got;       // copied out when the call returned
  };
  struct CallTimes {
    double candidate_ms = 0;
    std::optional<double> reference_ms;
  };

  WorkloadRun(Evaluation& evaluation, const Workload& workload, WorkloadData data);
  Status lay_out(const Workload& workload);
  Result<std::unique_ptr<CandidateProcess>> start(bool trace, Ruling& ruling);
  void prepare(CandidateProcess& process, uint32_t call);
  double run_reference(CandidateProcess& process);
  // Fills, poisons, runs candidate and reference in the given order, and compares.
  Ruling call(CandidateProcess& process, bool candidate_first, CallTimes& times);
  Ruling after_call(CandidateProcess& process, const CallOutcome& outcome, int64_t deadline_ms);
  void copy_outputs(CandidateProcess& process);
  Ruling compare_outputs(uint32_t call);
  Ruling explain_mismatch(uint32_t call, const Output& output, const OutputComparison& comparison) const;
  void keep_worst(OutputComparison comparison);
  int64_t deadline_ms() const;
  Ruling finish(Ruling ruling);
  Ruling summarize_calls(const std::vector<double>& candidate_ms, const std::vector<double>& reference_ms);

  Evaluation& evaluation_;
  WorkloadData data_;
  std::vector<CandidateArgument> arguments_;
  std::vector<size_t> inputs_;  // arguments that are input tensors, parallel to data_.tensors()
  std::vector<Output> outputs_;
  std::unique_ptr<ReferenceOperator> reference_;  // null where expected outputs are stored
  double reference_ms_ = 0;                       // latest
  int compared_in_process_ = 0;                   // calls of the current process whose outputs were compared
  WorkloadVerdict verdict_;
};

}  // namespace fixit

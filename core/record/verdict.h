// What a profiler says of one compiled candidate on all workloads of one problem.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/codec.h"
#include "core/record/turn_status.h"

namespace fixit {

struct Mismatch {
  std::vector<int64_t> index;  // row-major multi-index into the output
  double got = 0;
  double expected = 0;
  FIXIT_FIELDS(index, got, expected);
};

// torch.allclose over one output: an element matches where |x - y| <= atol + rtol * |y|, NaN never matches,
// infinities match only themselves. The worst call of the evaluation is reported.
struct OutputComparison {
  std::string name;
  int64_t call = 0;  // which call of the evaluation these figures are from, 0-based
  int64_t elements = 0;
  int64_t mismatched = 0;
  double matched_ratio = 0;  // 0..1
  double max_abs_error = 0;
  double max_rel_error = 0;                // |x - y| / |y| over y != 0
  double relative_l2 = 0;                  // ||x - y||_2 / ||y||_2
  std::vector<Mismatch> first_mismatches;  // at most 5
  FIXIT_FIELDS(name, call, elements, mismatched, matched_ratio, max_abs_error, max_rel_error, relative_l2,
               first_mismatches);
};

struct LatencySummary {  // milliseconds
  double median_ms = 0;
  double q1_ms = 0;
  double q3_ms = 0;
  double min_ms = 0;
  int samples = 0;
  int discarded = 0;
  FIXIT_FIELDS(median_ms, q1_ms, q3_ms, min_ms, samples, discarded);
};

struct WorkloadVerdict {
  std::string uuid;
  std::map<std::string, int64_t> axes;
  TurnStatus status = TurnStatus::kPending;
  int calls = 0;  // calls whose outputs were compared
  std::vector<OutputComparison> outputs;
  std::optional<LatencySummary> latency;
  std::optional<LatencySummary> reference_latency;  // absent where expected outputs are stored
  std::optional<double> speedup;                    // reference median / candidate median
  bool noisy = false;
  bool fixed_inputs = false;  // stored input tensors: every call saw the same data
  FIXIT_FIELDS(uuid, axes, status, calls, outputs, latency, reference_latency, speedup, noisy, fixed_inputs);
};

struct Fault {
  std::string kind;    // "segmentation fault", "write past the end of output C", "exit(3)", "hang"
  std::string where;   // function and offset in the candidate, or file:line, where known
  std::string detail;  // the evidence: address, signal, bytes
  FIXIT_FIELDS(kind, where, detail);
};

struct InstructionSite {
  std::string function;  // symbol of the candidate that holds the instruction
  uint64_t offset = 0;   // from the start of the object's text
  std::string instruction;
  uint64_t executed = 0;  // times seen; exact unless the proof's count is capped
  FIXIT_FIELDS(function, offset, instruction, executed);
};

struct InstructionProof {
  InstructionVerdict verdict = InstructionVerdict::kUnknown;
  std::string family;  // "fma"
  std::string reason;  // why unknown, no or token
  uint64_t static_sites = 0;
  uint64_t executed = 0;  // executions counted; a lower bound where `capped`
  bool capped = false;
  std::optional<double>
      work_fraction;  // FLOPs of the executed instructions / the workload's FLOPs; absent if capped
  std::vector<InstructionSite> sites;  // executed ones first, at most 16
  FIXIT_FIELDS(verdict, family, reason, static_sites, executed, capped, work_fraction, sites);
};

struct VerdictEnvironment {
  std::string device;     // product name of the GPU or CPU
  std::string profiler;   // profiler id
  std::string evaluator;  // evaluator identity: version, reference library, rules; part of the cache key
  std::map<std::string, std::string> libraries;
  FIXIT_FIELDS(device, profiler, evaluator, libraries);
};

struct Verdict {
  TurnStatus status = TurnStatus::kPending;
  std::string check;     // the check that decided a BANNED, REJECTED, UNSUPPORTED or INFRA
  std::string evidence;  // what that check saw
  std::optional<Fault> fault;
  InstructionProof instructions;
  std::vector<WorkloadVerdict> workloads;
  std::optional<double> speedup;  // minimum over workloads; present only where CORRECT and measured
  std::string baseline;           // what the reference latency is of: "OpenBLAS sgemm 0.3.21", "none"
  bool noisy = false;
  bool cached = false;
  std::string isolation;  // "process" on the CPU target, "replay" or "direct" on CUDA
  std::string sandbox;    // sandbox level reached: "namespaces+seccomp", "seccomp"
  std::string request_key;
  uint64_t seed = 0;        // of the inputs
  double tolerance = 1e-2;  // atol = rtol
  VerdictEnvironment environment;
  std::map<std::string, double> stage_ms;  // wall time by stage, milliseconds
  FIXIT_FIELDS(status, check, evidence, fault, instructions, workloads, speedup, baseline, noisy, cached,
               isolation, sandbox, request_key, seed, tolerance, environment, stage_ms);
};

FIXIT_EXTERN_CODEC(Verdict)

}  // namespace fixit

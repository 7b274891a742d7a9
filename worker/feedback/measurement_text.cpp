#include "worker/feedback/measurement_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "worker/feedback/text.h"

namespace fixit {
namespace {

constexpr size_t kWorkloads = 8;  // shown one by one; the rest is counted
constexpr size_t kOutputs = 4;
constexpr size_t kPlaces = 5;
constexpr size_t kSites = 4;
constexpr size_t kName = 120;

std::string workload_label(const WorkloadVerdict& workload) {
  std::string label;
  for (const auto& [axis, value] : workload.axes)
    label += fmt::format("{}{}={}", label.empty() ? "" : ", ", axis, value);
  return label.empty() ? "the workload" : clip(label, 2 * kName);
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{:.7g}", value);
}

std::string output_text(const OutputComparison& output) {
  std::string text = fmt::format(
      "  output {}: {:.4f} % of {} elements match, {} do not; largest absolute error {}, largest relative "
      "error {}\n",
      clip(output.name, kName), 100 * output.matched_ratio, output.elements, output.mismatched,
      number(output.max_abs_error), number(output.max_rel_error));
  for (size_t i = 0; i < std::min(output.first_mismatches.size(), kPlaces); ++i) {
    const Mismatch& place = output.first_mismatches[i];
    text += fmt::format("    {}[{}]: got {}, expected {}\n", clip(output.name, kName),
                        fmt::join(place.index, ", "), number(place.got), number(place.expected));
  }
  return text;
}

}  // namespace

std::string mismatch_text(const Verdict& verdict) {
  std::string text;
  size_t shown = 0;
  size_t failed = 0;
  for (const WorkloadVerdict& workload : verdict.workloads) {
    if (workload.status == TurnStatus::kCorrect || workload.status == TurnStatus::kPending) continue;
    if (++failed > kWorkloads) continue;
    ++shown;
    text += fmt::format("With {}:\n", workload_label(workload));
    size_t outputs = 0;
    for (const OutputComparison& output : workload.outputs)
      if (output.mismatched > 0 && ++outputs <= kOutputs) text += output_text(output);
    if (outputs > kOutputs) text += fmt::format("  and {} more outputs\n", outputs - kOutputs);
  }
  if (failed > shown) text += fmt::format("and {} more workloads\n", failed - shown);
  if (verdict.workloads.size() > failed && failed > 0)
    text += fmt::format("{} of {} workloads are wrong.\n", failed, verdict.workloads.size());
  return text;
}

std::string performance_text(const Verdict& verdict, double target_speedup) {
  std::string text;
  size_t shown = 0;
  for (const WorkloadVerdict& workload : verdict.workloads) {
    if (!workload.latency || ++shown > kWorkloads) continue;
    text += fmt::format("With {}: {:.5g} ms a call (median)", workload_label(workload),
                        workload.latency->median_ms);
    if (workload.reference_latency)
      text += fmt::format(", reference {:.5g} ms{}", workload.reference_latency->median_ms,
                          verdict.baseline.empty() ? "" : " (" + clip(verdict.baseline, kName) + ")");
    if (workload.speedup) text += fmt::format(", speedup {:.3f}x", *workload.speedup);
    text += "\n";
  }
  if (shown > kWorkloads) text += fmt::format("and {} more workloads\n", shown - kWorkloads);
  if (!verdict.speedup) return text;
  const double speedup = *verdict.speedup;
  text += fmt::format("{} {:.3f}x, target {:.3f}x: ", shown > 1 ? "Lowest speedup" : "Speedup", speedup,
                      target_speedup);
  if (speedup >= target_speedup) return text + "the target is reached.\n";
  return text + (speedup > 0 ? fmt::format("the kernel must still become {:.3g} times faster.\n",
                                           target_speedup / speedup)
                             : "the target is not reached.\n");
}

std::string instruction_text(const InstructionProof& proof) {
  const std::string family = clip(proof.family, kName);
  const std::string count = fmt::format("{}{} times", proof.capped ? "at least " : "", proof.executed);
  std::string text;
  switch (proof.verdict) {
    case InstructionVerdict::kUnknown:
      return "";
    case InstructionVerdict::kYes:
      text = fmt::format("Required instructions ({}): executed, {}.\n", family, count);
      break;
    case InstructionVerdict::kNo:
      text =
          fmt::format("Required instructions ({}): not executed.{}\n", family,
                      proof.static_sites > 0
                          ? fmt::format(" The object holds {} of them, none was reached.", proof.static_sites)
                          : " The object holds none.");
      break;
    case InstructionVerdict::kToken:
      text = fmt::format(
          "Required instructions ({}): executed {}, which is only a token share of the work. Let them do "
          "the main computation.\n",
          family, count);
      break;
  }
  if (proof.work_fraction)
    text += fmt::format("  share of the work done by them: {:.1f} %\n", 100 * *proof.work_fraction);
  if (!proof.reason.empty()) text += "  " + clip(proof.reason, 2 * kName) + "\n";
  for (size_t i = 0; i < std::min(proof.sites.size(), kSites); ++i) {
    const InstructionSite& site = proof.sites[i];
    if (site.executed > 0)
      text += fmt::format("  {} in {}: {} times\n", clip(site.instruction, kName), clip(site.function, kName),
                          site.executed);
  }
  return text;
}

}  // namespace fixit

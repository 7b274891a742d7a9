#include "profiler/target/cpu/instruction_proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace fixit {
namespace {

constexpr size_t kShownSites = 16;
constexpr uint64_t kMinCap = 4;

InstructionProof unknown(std::string_view family, std::string reason) {
  InstructionProof proof;
  proof.family = family;
  proof.reason = std::move(reason);
  return proof;
}

std::vector<InstructionSite> shown_sites(const std::vector<CodeSite>& sites,
                                         const std::vector<uint64_t>& executed) {
  std::vector<InstructionSite> shown;
  for (size_t i = 0; i < sites.size(); ++i)
    shown.push_back({sites[i].function, sites[i].offset, sites[i].text, executed[i]});
  std::ranges::stable_sort(shown, std::ranges::greater{}, &InstructionSite::executed);
  if (shown.size() > kShownSites) shown.resize(kShownSites);
  return shown;
}

}  // namespace

uint64_t cap_per_site(size_t sites) {
  return std::max<uint64_t>(kMinCap, kMaxCountedExecutions / std::max<size_t>(1, sites));
}

InstructionProof judge_counts(std::string_view family, const std::vector<CodeSite>& sites,
                              const std::vector<uint64_t>& executed, bool capped, double flops) {
  InstructionProof proof;
  proof.family = family;
  proof.static_sites = sites.size();
  proof.capped = capped;
  double counted_flops = 0;
  for (size_t i = 0; i < sites.size(); ++i) {
    proof.executed += executed[i];
    counted_flops += static_cast<double>(executed[i]) * sites[i].flops;
  }
  proof.sites = shown_sites(sites, executed);
  if (proof.executed == 0) {
    proof.verdict = InstructionVerdict::kNo;
    proof.reason = sites.empty()
                       ? fmt::format("the object has no {} instruction", family)
                       : fmt::format("none of the {} {} instructions was executed", sites.size(), family);
    return proof;
  }
  proof.verdict = InstructionVerdict::kYes;
  if (capped || flops <= 0) return proof;
  proof.work_fraction = counted_flops / flops;
  if (*proof.work_fraction < kMinWorkShare) {
    proof.verdict = InstructionVerdict::kToken;
    proof.reason =
        fmt::format("the executed {} instructions do {:.3g} % of the workload's floating point operations",
                    family, 100 * *proof.work_fraction);
  }
  return proof;
}

InstructionProof prove_instructions(std::string_view object, std::string_view family, double flops,
                                    const CountExecutions& count) {
  const auto sites = find_instructions(object, family);
  if (!sites.ok()) return unknown(family, sites.status().message());
  if (sites->empty()) return judge_counts(family, *sites, {}, false, flops);
  std::vector<uint64_t> offsets;
  for (const CodeSite& site : *sites) offsets.push_back(site.offset);
  const auto counts = count(offsets, cap_per_site(offsets.size()));
  if (counts.ok() && counts->executed.size() == offsets.size())
    return judge_counts(family, *sites, counts->executed, counts->capped, flops);
  InstructionProof proof = unknown(
      family, counts.ok() ? std::string("the count does not cover all sites") : counts.status().message());
  proof.static_sites = sites->size();
  return proof;
}

}  // namespace fixit

// Verdicts in the store, by what was asked and who judged.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "core/record/verdict.h"
#include "core/store/store.h"

namespace fixit {

// Verdicts of the same evaluator on the same device stand for each other.
struct JudgeIdentity {
  std::string evaluator;
  std::string device;
  auto operator<=>(const JudgeIdentity&) const = default;
};

std::string verdict_name(const std::string& request_key, const JudgeIdentity& judge);

// Faults of ours and noisy measurements say nothing that should last.
bool is_cacheable(const Verdict& verdict);

// The first one found, marked as cached.
Result<std::optional<Verdict>> find_verdict(BlobStore& store, const std::string& request_key,
                                            const std::vector<JudgeIdentity>& judges);

// Durable on return. A verdict that is there already stays, which is no error.
Status store_verdict(BlobStore& store, const std::string& request_key, const JudgeIdentity& judge,
                     const Verdict& verdict);

}  // namespace fixit

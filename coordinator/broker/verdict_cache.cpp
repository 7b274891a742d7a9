#include "coordinator/broker/verdict_cache.h"

namespace fixit {

std::string verdict_name(const std::string& request_key, const JudgeIdentity& judge) {
  return "verdict/" + sha256_of({request_key, judge.evaluator, judge.device});
}

bool is_cacheable(const Verdict& verdict) {
  return consumes_turn(verdict.status) && !verdict.noisy;
}

Result<std::optional<Verdict>> find_verdict(BlobStore& store, const std::string& request_key,
                                            const std::vector<JudgeIdentity>& judges) {
  for (const auto& judge : judges) {
    FIXIT_ASSIGN_OR_RETURN(const auto hash, store.lookup(verdict_name(request_key, judge)));
    if (!hash) continue;
    FIXIT_ASSIGN_OR_RETURN(const auto bytes, store.get(*hash));
    FIXIT_ASSIGN_OR_RETURN(auto verdict, decode<Verdict>(bytes));
    verdict.cached = true;
    return std::optional<Verdict>(std::move(verdict));
  }
  return std::optional<Verdict>();
}

Status store_verdict(BlobStore& store, const std::string& request_key, const JudgeIdentity& judge,
                     const Verdict& verdict) {
  FIXIT_ASSIGN_OR_RETURN(const auto hash, store.put(encode(verdict)));
  const Status bound = store.bind(verdict_name(request_key, judge), hash);
  return bound.code() == ErrorCode::kConflict ? Status() : bound;
}

}  // namespace fixit

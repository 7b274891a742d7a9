#include "coordinator/chain/rows.h"

#include <algorithm>
#include <map>

#include "coordinator/chain/chain_jobs.h"
#include "coordinator/chain/mining.h"

namespace fixit {
namespace {

// A fence longer than any run of backticks inside, so that no kernel can end it early.
std::string fenced(const std::string& source) {
  size_t longest = 0;
  size_t run = 0;
  for (const char c : source) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  const bool ends_line = !source.empty() && source.back() == '\n';
  return fence + "cpp\n" + source + (ends_line ? "" : "\n") + fence + "\n";
}

Json message(const char* role, const std::string& content, int mask) {
  return Json{{"role", role}, {"content", content}, {"step_loss_mask", mask}};
}

Result<Json> messages_of(const RepairedPair& pair, const RationaleRecord& rationale, BlobStore& store) {
  FIXIT_ASSIGN_OR_RETURN(const std::string system, store.get(pair.failure->system));
  FIXIT_ASSIGN_OR_RETURN(const std::string task, store.get(pair.failure->task));
  FIXIT_ASSIGN_OR_RETURN(const std::string reply, store.get(pair.failure->reply));
  FIXIT_ASSIGN_OR_RETURN(const std::string feedback, store.get(pair.failure->feedback));
  FIXIT_ASSIGN_OR_RETURN(const std::string thinking, store.get(rationale.text));
  FIXIT_ASSIGN_OR_RETURN(const std::string kernel, store.get(pair.repair->source));
  return Json::array({message("system", system, 0), message("user", task, 0), message("assistant", reply, 0),
                      message("user", feedback, 0),
                      message("assistant", "<think>\n" + thinking + "\n</think>\n" + fenced(kernel), 1)});
}

std::string verdict_key(const TurnRecord& turn) {
  return turn.verdict ? turn.verdict->request_key : std::string();  // a kernel that did not compile has none
}

Json metadata_of(const SweepRecords& records, const RepairedPair& pair, const RationaleRecord& rationale) {
  const TurnRecord& failed = *pair.failure;
  const TurnRecord& repair = *pair.repair;
  const Verdict& verdict = *repair.verdict;
  return Json{{"sweep", records.sweep.sweep.name},
              {"problem", failed.axes.problem},
              {"gpu", failed.axes.gpu},
              {"failed",
               {{"job", failed.axes.job},
                {"turn", failed.turn},
                {"status", name_of(failed.status)},
                {"model", failed.axes.model},
                {"source", failed.source},
                {"verdict_key", verdict_key(failed)}}},
              {"repair",
               {{"job", repair.axes.job},
                {"turn", repair.turn},
                {"model", repair.axes.model},
                {"source", repair.source},
                {"speedup", *verdict.speedup},
                {"instructions", name_of(verdict.instructions.verdict)},
                {"verdict_key", verdict_key(repair)}}},
              {"rationale",
               {{"job", rationale.axes.job},
                {"attempt", rationale.attempt},
                {"model", rationale.axes.model},
                {"request", rationale.request},
                {"reply", rationale.reply}}},
              {"pack", failed.axes.pack},
              {"pack_hash", failed.axes.pack_hash},
              {"evaluator", verdict.environment.evaluator},
              {"device", verdict.environment.device},
              {"isolation", verdict.isolation},
              {"recipe", records.sweep.recipe->name}};
}

// Text of models need not be UTF-8; JSON must be.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Accepted rationales of planned jobs; of one job the first that was accepted.
std::map<std::string, const RationaleRecord*> accepted_rationales(const SweepRecords& records) {
  std::map<std::string, const RationaleRecord*> by_job;
  for (const RationaleRecord& rationale : records.rationales) {
    if (!rationale.accepted || rationale.text.empty()) continue;
    const RationaleRecord*& kept = by_job[rationale.axes.job];
    if (kept == nullptr || rationale.attempt < kept->attempt) kept = &rationale;
  }
  return by_job;
}

}  // namespace

Result<BuiltRows> build_rows(const SweepRecords& records, BlobStore& store) {
  const RecipeConfig& recipe = *records.sweep.recipe;
  const std::vector<RepairedPair> pairs = verified_repairs(records, recipe);
  const auto accepted = accepted_rationales(records);
  BuiltRows built;
  built.failures = static_cast<int64_t>(mine_failures(records, recipe).size());
  built.repairs = static_cast<int64_t>(pairs.size());
  std::map<std::string, std::string> lines;  // id -> row; the first pair in order wins a duplicate's metadata
  for (const RepairedPair& pair : pairs) {
    const auto rationale = accepted.find(rationale_job_id(records, pair));
    if (rationale == accepted.end()) continue;
    ++built.rationales;
    auto messages = messages_of(pair, *rationale->second, store);
    if (!messages.ok()) {
      return messages.status().with_context("row of repair " + pair.repair->axes.job + " turn " +
                                            std::to_string(pair.repair->turn));
    }
    const std::string id = sha256(dump(*messages)).substr(0, 24);
    Json row;
    row["id"] = id;
    row["messages"] = std::move(*messages);
    row["metadata"] = metadata_of(records, pair, *rationale->second);
    lines.emplace(id, dump(row));
  }
  for (const auto& [id, line] : lines) built.jsonl += line + "\n";
  built.rows = static_cast<int64_t>(lines.size());
  return built;
}

}  // namespace fixit

#include "tests/endtoend/demonstration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/child_process.h"
#include "core/base/file.h"
#include "tests/support/eventually.h"

namespace fixit::testing {
namespace {

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << "the configuration no longer holds " << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), by);
}

std::string whole_file(const std::filesystem::path& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  return text.ok() ? *text : "";
}

void for_each_record(const std::filesystem::path& journal,
                     const std::function<void(const JournalRecord&)>& visit) {
  const Status status = read_journal(journal, [&](const JournalRecord& record) {
    visit(record);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
}

}  // namespace

std::filesystem::path program_folder() {
  return FIXIT_BINARY_DIR;
}

Demonstration::Demonstration() {
  const std::filesystem::path source = FIXIT_SOURCE_DIR;
  const auto recursive = std::filesystem::copy_options::recursive;
  std::filesystem::copy(source / "configs", folder_ / "configs", recursive);
  std::filesystem::copy(source / "recipes", folder_ / "recipes", recursive);
  std::string cpu = whole_file(gpu());
  cpu = replaced(cpu, "warmup_calls: 10", "warmup_calls: 1");
  cpu = replaced(cpu, "timed_calls: 50", "timed_calls: 5");
  cpu = replaced(cpu, "call_deadline_min_s: 2", "call_deadline_min_s: 1");
  folder_.write("configs/gpus/cpu.yaml", cpu);
  // Out of reach, so that no measurement decides how many turns there are.
  folder_.write("configs/sweeps/quickstart.yaml",
                replaced(whole_file(sweep()), "target_speedup: 2", "target_speedup: 1000"));
}

SiteConfig Demonstration::site() const {
  SiteConfig site;
  site.redis = "embedded";
  site.data = data();
  site.lease_s = 3;
  site.profiler_silence_s = 3;
  return site;
}

Demonstration::Finished Demonstration::fixit(const std::vector<std::string>& words) const {
  ChildProcess::Options options;
  options.words = {(program_folder() / "fixit").string()};
  options.words.insert(options.words.end(), words.begin(), words.end());
  options.log = folder_ / "fixit.log";
  std::filesystem::remove(options.log);
  const auto process = ChildProcess::spawn(std::move(options));
  EXPECT_TRUE(process.ok()) << process.status().to_string();
  if (!process.ok()) return {};
  EXPECT_TRUE(eventually([&] { return (*process)->exited(); }, std::chrono::minutes(8)));
  (*process)->stop();
  return {(*process)->ending(), whole_file(folder_ / "fixit.log")};
}

Demonstration::Turns Demonstration::turns(JobKind kind) const {
  Turns turns;
  for_each_record(data() / "journal", [&](const JournalRecord& record) {
    if (record.kind != JournalKind::kTurn) return;
    const auto turn = decode<TurnRecord>(record.data);
    ASSERT_TRUE(turn.ok()) << turn.status().to_string();
    if (turn->axes.kind != kind) return;
    const int failed_turn = turn->origin ? turn->origin->failed_turn : turn->turn;
    turns[{turn->axes.problem, turn->axes.sample, failed_turn, turn->origin ? turn->turn : 0}] =
        name_of(turn->status);
  });
  return turns;
}

std::vector<std::string> Demonstration::duplicates() const {
  std::set<std::string> seen;
  std::vector<std::string> twice;
  for_each_record(data() / "journal", [&](const JournalRecord& record) {
    std::string name;
    if (record.kind == JournalKind::kTurn) {
      const auto turn = decode<TurnRecord>(record.data);
      name = "turn " + turn->axes.job + " " + std::to_string(turn->turn);
    } else if (record.kind == JournalKind::kJobEnd) {
      name = "end " + decode<JobEndRecord>(record.data)->axes.job;
    } else if (record.kind == JournalKind::kRationale) {
      const auto rationale = decode<RationaleRecord>(record.data);
      name = "rationale " + rationale->axes.job + " " + std::to_string(rationale->attempt);
    } else {
      return;
    }
    if (!seen.insert(name).second) twice.push_back(name);
  });
  return twice;
}

int64_t Demonstration::tokens() const {
  int64_t total = 0;
  for_each_record(data() / "journal", [&](const JournalRecord& record) {
    TokenUsage usage;
    if (record.kind == JournalKind::kTurn) usage = decode<TurnRecord>(record.data)->usage;
    if (record.kind == JournalKind::kRationale) usage = decode<RationaleRecord>(record.data)->usage;
    total += usage.prompt + usage.completion;
  });
  return total;
}

std::vector<std::string> Demonstration::rows_without_measurements() const {
  std::vector<std::string> rows;
  std::istringstream lines(whole_file(this->rows()));
  for (std::string line; std::getline(lines, line);) {
    const auto parsed = parse_json(line, "rows.jsonl");
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
    if (!parsed.ok()) continue;
    const Json& row = *parsed;
    Json kept{{"failed", row["metadata"]["failed"]},
              {"repair", row["metadata"]["repair"]["source"]},
              {"rationale", row["metadata"]["rationale"]["attempt"]},
              {"messages", Json::array()}};
    for (size_t i = 0; i < row["messages"].size(); ++i)
      if (i != 3) kept["messages"].push_back(row["messages"][i]);
    rows.push_back(kept.dump());
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace fixit::testing

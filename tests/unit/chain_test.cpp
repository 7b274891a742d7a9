// The chain's decisions on constructed journals: what is mined, what is kept, what a row looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "coordinator/chain/chain_jobs.h"
#include "coordinator/chain/mining.h"
#include "coordinator/chain/rows.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;

FrozenSweep sweep_with_recipe() {
  FrozenSweep sweep;
  sweep.sweep.name = "small";
  for (const char* name : {"attention", "gemm", "rmsnorm"}) {
    FrozenProblem problem;
    problem.name = name;
    sweep.problems.push_back(problem);
  }
  for (const char* name : {"student", "teacher", "writer"}) {
    FrozenModel model;
    model.config.name = name;
    sweep.models.push_back(model);
  }
  sweep.gpus.resize(1);
  sweep.gpus[0].name = "cpu";
  sweep.packs.resize(1);
  sweep.packs[0].name = "basic";
  RecipeConfig recipe;
  recipe.name = "tiny";
  recipe.failures.statuses = {"COMPILE_ERROR", "INCORRECT_NUMERICAL", "RUNTIME_ERROR"};
  recipe.repair.model = "teacher";
  recipe.rationale.model = "writer";
  sweep.recipe = recipe;
  return sweep;
}

// Records of one sweep as they would come out of the journal, with their texts in a store.
class SweepFixture {
 public:
  SweepFixture() { add(JournalKind::kSweep, encode(sweep_with_recipe())); }

  BlobHash put(const std::string& text) { return *store->put(text); }
  void add(JournalKind kind, std::string data) {
    JournalRecord record;
    record.kind = kind;
    record.sweep = "small";
    record.data = std::move(data);
    journal.push_back(std::move(record));
  }

  TurnRecord turn(JobKind kind, const std::string& job, const std::string& problem, int number,
                  TurnStatus status) {
    TurnRecord turn;
    turn.axes = {"small", job,     kind,       problem, kind == JobKind::kRollout ? "student" : "teacher",
                 "cpu",   "basic", "packhash", 0};
    turn.turn = number;
    turn.status = status;
    const std::string label = job + "/" + std::to_string(number);
    turn.system = put("system");
    turn.task = put("task of " + problem);
    turn.reply = put("reply " + label);
    turn.source = put("source " + label);
    turn.feedback = put("feedback " + label);
    return turn;
  }
  TurnRecord failure(const std::string& job, const std::string& problem, int number,
                     TurnStatus status = TurnStatus::kCompileError) {
    const TurnRecord record = turn(JobKind::kRollout, job, problem, number, status);
    add(JournalKind::kTurn, encode(record));
    return record;
  }
  TurnRecord repair_turn(const std::string& job, const TurnRecord& failed, int number, double speedup) {
    TurnRecord record = turn(JobKind::kRepair, job, failed.axes.problem, number, TurnStatus::kCorrect);
    Origin origin;
    origin.failed_job = failed.axes.job;
    origin.failed_turn = failed.turn;
    origin.failed_source = failed.source;
    origin.failed_feedback = failed.feedback;
    record.origin = origin;
    Verdict verdict;
    verdict.status = TurnStatus::kCorrect;
    verdict.isolation = "process";
    verdict.speedup = speedup;
    verdict.instructions.verdict = InstructionVerdict::kYes;
    verdict.request_key = "key of " + job + "/" + std::to_string(number);
    verdict.environment.evaluator = "evaluator 1";
    verdict.environment.device = "a processor";
    record.verdict = verdict;
    return record;
  }
  void plan(const std::string& phase, const std::vector<std::string>& jobs) {
    add(JournalKind::kPlan, encode(PlanRecord{phase, jobs}));
  }
  void accept_rationale(const std::string& job, int attempt, const std::string& text) {
    RationaleRecord record;
    record.axes.sweep = "small";
    record.axes.job = job;
    record.axes.kind = JobKind::kRationale;
    record.axes.model = "writer";
    record.attempt = attempt;
    record.accepted = true;
    record.text = put(text);
    record.request = put("request");
    record.reply = put("<rationale>" + text + "</rationale>");
    add(JournalKind::kRationale, encode(record));
  }
  SweepRecords records() const {
    SweepRecords records;
    for (const JournalRecord& record : journal) EXPECT_TRUE(records.add(record, "small").ok());
    return records;
  }

  std::unique_ptr<BlobStore> store = make_memory_store();
  std::vector<JournalRecord> journal;
};

std::vector<std::string> labels(const std::vector<const TurnRecord*>& turns) {
  std::vector<std::string> labels;
  for (const TurnRecord* turn : turns)
    labels.push_back(turn->axes.problem + ":" + turn->axes.job + "/" + std::to_string(turn->turn));
  return labels;
}

TEST(LargestRemainder, SharesInProportionAndGivesTheRestToTheLargestRemainders) {
  // 10 of 33: exact shares 6.06, 3.03, 0.91; floors 6, 3, 0; the one left goes to 0.91.
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{20, 10, 3}, 10), ElementsAre(6, 3, 1));
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{1, 1, 1, 1}, 4), ElementsAre(1, 1, 1, 1));
}

TEST(LargestRemainder, TiesGoToTheLargerStratumThenToTheEarlier) {
  // Exact shares 0.5 and 1.5 each: equal remainders, the larger stratum first.
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{1, 3}, 2), ElementsAre(0, 2));
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{2, 2, 2}, 2), ElementsAre(1, 1, 0));
}

TEST(LargestRemainder, TakesAllWhereTheCapIsNotReachedAndNeverMoreThanThereIs) {
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{2, 5}, 7), ElementsAre(2, 5));
  EXPECT_THAT(largest_remainder(std::vector<int64_t>{2, 5}, 100), ElementsAre(2, 5));
  EXPECT_TRUE(largest_remainder(std::vector<int64_t>{}, 3).empty());
  for (int64_t cap = 0; cap <= 46; ++cap) {
    const std::vector<int64_t> sizes{1, 7, 0, 19, 19};
    const std::vector<int64_t> quotas = largest_remainder(sizes, cap);
    EXPECT_EQ(std::accumulate(quotas.begin(), quotas.end(), int64_t{0}), cap);
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_LE(quotas[i], sizes[i]);
  }
}

TEST(Mining, TakesOnlyTheFailuresThatTheRecipeNames) {
  SweepFixture sweep;
  sweep.failure("b", "gemm", 1);
  sweep.failure("a", "gemm", 1, TurnStatus::kRuntimeError);
  sweep.failure("a", "gemm", 0);
  sweep.failure("a", "gemm", 4);                        // beyond max_turn
  sweep.failure("c", "gemm", 0, TurnStatus::kNoCode);   // status not asked for
  sweep.failure("c", "gemm", 1, TurnStatus::kCorrect);  // no failure
  sweep.failure("d", "rmsnorm", 0);                     // problem not asked for
  sweep.failure("e", "attention", 2, TurnStatus::kIncorrectNumerical);
  TurnRecord sourceless = sweep.turn(JobKind::kRollout, "f", "gemm", 0, TurnStatus::kCompileError);
  sourceless.source.clear();
  sweep.add(JournalKind::kTurn, encode(sourceless));
  TurnRecord repair = sweep.turn(JobKind::kRepair, "g", "gemm", 0, TurnStatus::kCompileError);
  sweep.add(JournalKind::kTurn, encode(repair));

  const SweepRecords records = sweep.records();
  RecipeConfig recipe = *records.sweep.recipe;
  recipe.failures.max_turn = 3;
  recipe.failures.problems = {"gem*", "attention"};
  EXPECT_THAT(labels(mine_failures(records, recipe)),
              ElementsAre("attention:e/2", "gemm:a/0", "gemm:a/1", "gemm:b/1"));
}

TEST(Mining, ATurnRecordedTwiceCountsOnceAndTheFirstRecordCounts) {
  SweepFixture sweep;
  const TurnRecord first = sweep.failure("a", "gemm", 0);
  TurnRecord again = first;
  again.source = sweep.put("another source");
  sweep.add(JournalKind::kTurn, encode(again));
  const SweepRecords records = sweep.records();
  const auto mined = mine_failures(records, *records.sweep.recipe);
  ASSERT_EQ(mined.size(), 1u);
  EXPECT_EQ(mined[0]->source, first.source);
}

TEST(Mining, CapsEachProblemOverItsStrata) {
  SweepFixture sweep;
  for (int i = 0; i < 6; ++i) sweep.failure("c" + std::to_string(i), "gemm", 0);
  for (int i = 0; i < 3; ++i) sweep.failure("r" + std::to_string(i), "gemm", 1, TurnStatus::kRuntimeError);
  sweep.failure("only", "rmsnorm", 0);
  const SweepRecords records = sweep.records();
  RecipeConfig recipe = *records.sweep.recipe;
  recipe.per_definition = 3;
  EXPECT_THAT(labels(mine_failures(records, recipe)),
              ElementsAre("gemm:c0/0", "gemm:c1/0", "gemm:r0/1", "rmsnorm:only/0"));
}

TEST(RepairJobs, CarryTheFailureAndItsAxes) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "rmsnorm", 2);
  const SweepRecords records = sweep.records();
  const auto jobs = repair_jobs(records, mine_failures(records, *records.sweep.recipe));
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ((*jobs)[0].lane.name(), "teacher@cpu");
  const auto payload = decode<JobPayload>((*jobs)[0].job.payload);
  ASSERT_TRUE(payload.ok());
  EXPECT_EQ(payload->kind, JobKind::kRepair);
  EXPECT_EQ(payload->problem, 2);
  EXPECT_EQ(payload->model, 1);
  EXPECT_EQ(payload->origin->failed_job, "a");
  EXPECT_EQ(payload->origin->failed_turn, 2);
  EXPECT_EQ(payload->origin->failed_source, failed.source);
  EXPECT_EQ(payload->origin->failed_feedback, failed.feedback);
  EXPECT_EQ((*jobs)[0].job.id,
            job_id("small", JobKind::kRepair, "rmsnorm", "teacher", "cpu", "basic", 0, payload->origin));
}

TEST(RepairJobs, ATeacherThatTheSweepLacksIsAnError) {
  SweepFixture sweep;
  sweep.failure("a", "gemm", 0);
  SweepRecords records = sweep.records();
  records.sweep.recipe->repair.model = "nobody";
  const auto jobs = repair_jobs(records, mine_failures(records, *records.sweep.recipe));
  ASSERT_FALSE(jobs.ok());
  EXPECT_EQ(jobs.status().code(), ErrorCode::kInvalid);
  EXPECT_THAT(jobs.status().message(), ::testing::HasSubstr("nobody"));
}

std::vector<int> kept_turns(const SweepRecords& records, const std::string& keep) {
  RecipeConfig recipe = *records.sweep.recipe;
  recipe.repair.keep = keep;
  std::vector<int> turns;
  for (const RepairedPair& pair : verified_repairs(records, recipe)) turns.push_back(pair.repair->turn);
  return turns;
}

TEST(VerifiedRepairs, KeepTheBestTheLatestOrAllOfAJob) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "gemm", 0);
  sweep.plan("repair", {"fix"});
  const double speedups[] = {0.5, 0.9, 0.9, 0.7};
  for (int turn = 0; turn < 4; ++turn)
    sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("fix", failed, turn, speedups[turn])));
  const SweepRecords records = sweep.records();
  EXPECT_THAT(kept_turns(records, "best"), ElementsAre(1));
  EXPECT_THAT(kept_turns(records, "latest"), ElementsAre(3));
  EXPECT_THAT(kept_turns(records, "all"), ElementsAre(0, 1, 2, 3));
}

TEST(VerifiedRepairs, RefuseWhatWasNotMeasuredOrNotIsolatedOrNotPlanned) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "gemm", 0);
  sweep.plan("repair", {"good", "slow", "direct", "unmeasured", "wrong"});
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("good", failed, 0, 0.2)));
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("slow", failed, 0, 0.19)));
  TurnRecord direct = sweep.repair_turn("direct", failed, 0, 2);
  direct.verdict->isolation = "direct";
  sweep.add(JournalKind::kTurn, encode(direct));
  TurnRecord unmeasured = sweep.repair_turn("unmeasured", failed, 0, 2);
  unmeasured.verdict->speedup.reset();
  sweep.add(JournalKind::kTurn, encode(unmeasured));
  TurnRecord wrong = sweep.repair_turn("wrong", failed, 0, 2);
  wrong.status = TurnStatus::kIncorrectNumerical;
  sweep.add(JournalKind::kTurn, encode(wrong));
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("unplanned", failed, 0, 2)));
  const SweepRecords records = sweep.records();
  RecipeConfig recipe = *records.sweep.recipe;
  recipe.repair.min_speedup = 0.2;
  const auto pairs = verified_repairs(records, recipe);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].repair->axes.job, "good");
  EXPECT_EQ(pairs[0].failure->axes.job, "a");
}

TEST(VerifiedRepairs, RequireTheInstructionsWhereTheRecipeDoes) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "gemm", 0);
  sweep.plan("repair", {"fix"});
  TurnRecord without = sweep.repair_turn("fix", failed, 0, 2);
  without.verdict->instructions.verdict = InstructionVerdict::kUnknown;
  sweep.add(JournalKind::kTurn, encode(without));
  const SweepRecords records = sweep.records();
  RecipeConfig recipe = *records.sweep.recipe;
  EXPECT_EQ(verified_repairs(records, recipe).size(), 1u);
  recipe.repair.require_instructions = true;
  EXPECT_TRUE(verified_repairs(records, recipe).empty());
}

// Two failures of one problem, both repaired, both explained.
void fill_two_rows(SweepFixture& sweep) {
  const TurnRecord one = sweep.failure("one", "gemm", 0);
  const TurnRecord two = sweep.failure("two", "gemm", 1, TurnStatus::kRuntimeError);
  sweep.plan("repair", {"fix1", "fix2"});
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("fix1", one, 0, 1.5)));
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("fix2", two, 2, 0.25)));
  const SweepRecords records = sweep.records();
  std::vector<std::string> jobs;
  for (const RepairedPair& pair : verified_repairs(records, *records.sweep.recipe))
    jobs.push_back(rationale_job_id(records, pair));
  ASSERT_EQ(jobs.size(), 2u);
  sweep.plan("rationale", jobs);
  for (const std::string& job : jobs) sweep.accept_rationale(job, 0, "why " + job);
}

std::vector<Json> parse_rows(const std::string& jsonl) {
  std::vector<Json> rows;
  size_t begin = 0;
  for (size_t end; (end = jsonl.find('\n', begin)) != std::string::npos; begin = end + 1)
    rows.push_back(*parse_json(jsonl.substr(begin, end - begin), "row"));
  return rows;
}

TEST(BuildRows, TrainOnlyOnTheRationaleAndTheRepairedKernel) {
  SweepFixture sweep;
  fill_two_rows(sweep);
  const auto built = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(built.ok()) << built.status().to_string();
  EXPECT_EQ(built->failures, 2);
  EXPECT_EQ(built->repairs, 2);
  EXPECT_EQ(built->rationales, 2);
  const std::vector<Json> rows = parse_rows(built->jsonl);
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    ASSERT_EQ(row["messages"].size(), 5u);
    std::vector<std::string> roles;
    std::vector<int> masks;
    for (const Json& message : row["messages"]) {
      roles.push_back(message["role"]);
      masks.push_back(message["step_loss_mask"]);
    }
    EXPECT_THAT(roles, ElementsAre("system", "user", "assistant", "user", "assistant"));
    EXPECT_THAT(masks, ElementsAre(0, 0, 0, 0, 1));
  }
  const Json& row = rows[0]["metadata"]["failed"]["job"] == "one" ? rows[0] : rows[1];
  EXPECT_EQ(row["messages"][0]["content"], "system");
  EXPECT_EQ(row["messages"][1]["content"], "task of gemm");
  EXPECT_EQ(row["messages"][2]["content"], "reply one/0");
  EXPECT_EQ(row["messages"][3]["content"], "feedback one/0");
  const std::string rationale = row["metadata"]["rationale"]["job"];
  EXPECT_EQ(row["messages"][4]["content"],
            "<think>\nwhy " + rationale + "\n</think>\n```cpp\nsource fix1/0\n```\n");
  EXPECT_EQ(row["metadata"]["failed"]["status"], "COMPILE_ERROR");
  EXPECT_EQ(row["metadata"]["repair"]["speedup"], 1.5);
  EXPECT_EQ(row["metadata"]["repair"]["verdict_key"], "key of fix1/0");
  EXPECT_EQ(row["metadata"]["device"], "a processor");
  EXPECT_EQ(row["metadata"]["recipe"], "tiny");
}

TEST(BuildRows, AreByteIdenticalWhenRebuiltInWhateverOrderJobsEnded) {
  SweepFixture sweep;
  fill_two_rows(sweep);
  const auto built = build_rows(sweep.records(), *sweep.store);
  const auto again = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(built.ok() && again.ok());
  EXPECT_EQ(built->jsonl, again->jsonl);
  std::reverse(sweep.journal.begin(), sweep.journal.end());
  const auto reversed = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(reversed.ok());
  EXPECT_EQ(built->jsonl, reversed->jsonl);
  const std::vector<Json> rows = parse_rows(built->jsonl);
  EXPECT_LT(rows[0]["id"].get<std::string>(), rows[1]["id"].get<std::string>());
}

TEST(BuildRows, DropExactDuplicates) {
  SweepFixture sweep;
  const TurnRecord one = sweep.failure("one", "gemm", 0);
  TurnRecord two = one;  // another sample whose model said and was told the same
  two.axes.job = "two";
  two.axes.sample = 1;
  sweep.add(JournalKind::kTurn, encode(two));
  sweep.plan("repair", {"fix1", "fix2"});
  const TurnRecord fix1 = sweep.repair_turn("fix1", one, 0, 1);
  TurnRecord fix2 = sweep.repair_turn("fix2", two, 0, 1);
  fix2.source = fix1.source;
  sweep.add(JournalKind::kTurn, encode(fix1));
  sweep.add(JournalKind::kTurn, encode(fix2));
  const SweepRecords records = sweep.records();
  for (const RepairedPair& pair : verified_repairs(records, *records.sweep.recipe))
    sweep.accept_rationale(rationale_job_id(records, pair), 0, "the same reasons");
  const auto built = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built->rationales, 2);
  EXPECT_EQ(built->rows, 1);
  EXPECT_EQ(parse_rows(built->jsonl)[0]["metadata"]["failed"]["job"], "one");
}

TEST(BuildRows, AKernelWithFencesInsideCannotEndItsFence) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "gemm", 0);
  sweep.plan("repair", {"fix"});
  TurnRecord repair = sweep.repair_turn("fix", failed, 0, 1);
  repair.source = sweep.put("// ```\nint x;\n");
  sweep.add(JournalKind::kTurn, encode(repair));
  const SweepRecords records = sweep.records();
  const auto pairs = verified_repairs(records, *records.sweep.recipe);
  ASSERT_EQ(pairs.size(), 1u);
  sweep.accept_rationale(rationale_job_id(records, pairs[0]), 1, "reasons");
  const auto built = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(parse_rows(built->jsonl)[0]["messages"][4]["content"],
            "<think>\nreasons\n</think>\n````cpp\n// ```\nint x;\n````\n");
}

TEST(BuildRows, AMissingBlobIsAnErrorThatNamesTheRow) {
  SweepFixture sweep;
  fill_two_rows(sweep);
  const auto empty = make_memory_store();
  const auto built = build_rows(sweep.records(), *empty);
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(built.status().message(), ::testing::HasSubstr("fix1"));
}

TEST(BuildRows, ARepairWithoutAnAcceptedRationaleMakesNoRow) {
  SweepFixture sweep;
  const TurnRecord failed = sweep.failure("a", "gemm", 0);
  sweep.plan("repair", {"fix"});
  sweep.add(JournalKind::kTurn, encode(sweep.repair_turn("fix", failed, 0, 1)));
  const auto built = build_rows(sweep.records(), *sweep.store);
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built->repairs, 1);
  EXPECT_EQ(built->rows, 0);
  EXPECT_EQ(built->jsonl, "");
}

}  // namespace
}  // namespace fixit

// From a sweep file to jobs: what is frozen, what is refused, and that a plan is always the same.
#include "coordinator/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/file.h"
#include "tests/support/temporary_folder.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string safetensors(const std::string& header, size_t bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 255);
  return file + header + std::string(bytes, 'x');
}

// A copy of the shipped configuration with recorded replies of its own, and one more trace set.
class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path source = FIXIT_SOURCE_DIR;
    for (const char* part :
         {"configs/traces", "configs/models", "configs/gpus", "configs/packs", "configs/sweeps", "recipes"}) {
      fs::create_directories((folder_.path() / part).parent_path());
      fs::copy(source / part, folder_.path() / part, fs::copy_options::recursive);
    }
    folder_.write("configs/replies/quickstart/rollout/gemm_f32_n512_k512/sample0/turn0.md", "hello\n");
    folder_.write("set/definitions/e/scale.json",
                  R"({"name":"scale","op_type":"e","axes":{"R":{"type":"var"}},
      "inputs":{"x":{"shape":["R"],"dtype":"float32"}},
      "outputs":{"y":{"shape":["R"],"dtype":"float32"},"z":{"shape":["R"],"dtype":"float32"}},
      "reference":"def run(x):\n    return x, x\n"})");
    folder_.write("set/definitions/e/bare.json",
                  R"({"name":"bare","op_type":"e","axes":{},"inputs":{},"outputs":{},
      "reference":"def run():\n    return ()\n"})");
    workloads(R"({"type":"safetensors","path":"blob/w.safetensors","tensor_key":"x"})");
    folder_.write("set/blob/w.safetensors", kTensors);
  }

  void workloads(const std::string& x) {
    folder_.write(
        "set/workloads/e/scale.jsonl",
        R"({"definition":"scale","solution":null,"evaluation":null,"workload":{"uuid":"w-small","axes":{"R":2},"inputs":{}}})"
        "\n"
        R"({"definition":"scale","workload":{"uuid":"w-stored","axes":{"R":4},"inputs":{"x":)" +
            x +
            R"(},"outputs":{"y":{"type":"safetensors","path":"blob/w.safetensors","tensor_key":"y"}}}})"
            "\n");
  }

  Result<FrozenResult> freeze(const std::string& problems, const std::string& more = "") {
    const std::string packs = more.find("packs:") == std::string::npos ? "packs: [cpu-base]\n" : "";
    return freeze_sweep(
        folder_.write("mine.yaml", "trace_sets: [configs/traces/cpu, set]\nproblems: " + problems +
                                       "\nmodels: [quickstart-replay]\ngpus: [cpu]\n" + packs + more));
  }
  std::string error(const std::string& problems, const std::string& more = "") {
    const auto frozen = freeze(problems, more);
    return frozen.ok() ? "accepted" : frozen.status().message();
  }

  const std::string kTensors = safetensors(
      R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"y":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})",
      32);
  testing::TemporaryFolder folder_;
};

TEST_F(Launch, TheQuickstartFreezesWithItsTeacher) {
  const auto frozen = freeze_sweep(folder_ / "configs/sweeps/quickstart.yaml");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  const FrozenSweep& sweep = frozen->sweep;
  EXPECT_EQ(sweep.problems.size(), 4u);
  ASSERT_EQ(sweep.models.size(), 2u);
  EXPECT_EQ(sweep.models[1].config.name, "quickstart-teacher");
  EXPECT_TRUE(frozen->blobs.bytes.contains(sweep.models[0].replies));
  EXPECT_TRUE(sweep.packs[0].headers.contains("fixit_simd.h"));
  EXPECT_TRUE(sweep.recipe.has_value());
  const auto jobs = plan_jobs(sweep);
  EXPECT_EQ(jobs.size(), 4u * 2u) << "the teacher rolls nothing out";
  for (const auto& job : jobs) EXPECT_EQ(job.lane.name(), "quickstart-replay@cpu");
  for (const auto& [hash, bytes] : frozen->blobs.bytes) EXPECT_EQ(hash, sha256(bytes));
}

TEST_F(Launch, PlansAreTheSameEveryTimeAndNameEveryAxis) {
  const auto first = freeze("[\"*_f32_*\"]", "samples: 3\n");
  const auto second = freeze("[\"*_f32_*\"]", "samples: 3\n");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->sweep.hash(), second->sweep.hash());
  const auto jobs = plan_jobs(first->sweep);
  const auto again = plan_jobs(second->sweep);
  ASSERT_EQ(jobs.size(), 12u);
  std::set<std::string> ids;
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].job.id, again[i].job.id);
    EXPECT_EQ(jobs[i].job.payload, again[i].job.payload);
    ids.insert(jobs[i].job.id);
  }
  EXPECT_EQ(ids.size(), jobs.size());
  const auto payload = decode<JobPayload>(jobs[4].job.payload);
  ASSERT_TRUE(payload.ok());
  const JobAxes axes = axes_of(first->sweep, jobs[4].job.id, *payload);
  EXPECT_EQ(axes.sweep, "mine");
  EXPECT_EQ(axes.problem, "attention_f32_d64_causal");
  EXPECT_EQ(axes.model, "quickstart-replay");
  EXPECT_EQ(axes.gpu, "cpu");
  EXPECT_EQ(axes.pack, "cpu-base");
  EXPECT_EQ(axes.pack_hash, first->sweep.packs[0].hash);
  EXPECT_EQ(axes.sample, 1);
}

TEST_F(Launch, PayloadsThatPointNowhereGiveEmptyAxes) {
  const auto frozen = freeze("[scale]");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  JobPayload payload;
  payload.problem = 99;
  payload.model = -7;
  const JobAxes axes = axes_of(frozen->sweep, "j", payload);
  EXPECT_EQ(axes.problem, "");
  EXPECT_EQ(axes.model, "");
}

TEST_F(Launch, AnyChangeOfContentChangesTheHash) {
  const std::string before = freeze("[scale]")->sweep.hash();
  EXPECT_NE(freeze("[scale]", "turns: 7\n")->sweep.hash(), before);
  EXPECT_NE(freeze("[{name: scale, workload: w-small}]")->sweep.hash(), before);
  folder_.write("configs/replies/quickstart/rollout/gemm_f32_n512_k512/sample0/turn0.md", "changed\n");
  EXPECT_NE(freeze("[scale]")->sweep.hash(), before);
  folder_.write("configs/replies/quickstart/rollout/gemm_f32_n512_k512/sample0/turn0.md", "hello\n");
  EXPECT_EQ(freeze("[scale]")->sweep.hash(), before);
  std::string tensors = kTensors;
  tensors.back() = 'y';
  folder_.write("set/blob/w.safetensors", tensors);
  EXPECT_NE(freeze("[scale]")->sweep.hash(), before);
}

TEST_F(Launch, ProblemsThatMatchNothingAreErrorsWithASuggestion) {
  EXPECT_THAT(error("[gemm_f32_n512_k521]"),
              AllOf(HasSubstr("mine.yaml:2: problems[0]"), HasSubstr("did you mean `gemm_f32_n512_k512`?")));
  EXPECT_THAT(error("[scale, \"mha_*\"]"), HasSubstr("problems[1]: `mha_*` matches no definition"));
  EXPECT_THAT(error("[{name: scale, workload: w-big}]"),
              HasSubstr("no workload w-big; there are: w-small, w-stored"));
  EXPECT_THAT(error("[bare]"), HasSubstr("`bare` has no workload"));
  const auto frozen = freeze("[\"*a*e\"]");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  EXPECT_THAT(frozen->warnings, ::testing::Contains(HasSubstr("`bare` has no workload and is left out")));
}

TEST_F(Launch, SelectorsOfOneProblemAddUp) {
  const auto frozen = freeze("[{name: scale, workload: w-stored}, {name: \"sc*\", workload: w-small}]");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  ASSERT_EQ(frozen->sweep.problems.size(), 1u);
  ASSERT_EQ(frozen->sweep.problems[0].workloads.size(), 2u);
  EXPECT_EQ(frozen->sweep.problems[0].workloads[0].uuid, "w-small");
}

TEST_F(Launch, StoredTensorsAreFrozenAndChecked) {
  const auto frozen = freeze("[scale]");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  const auto& stored = frozen->sweep.problems[0].workloads[1];
  ASSERT_EQ(stored.tensors.size(), 1u);
  EXPECT_EQ(frozen->blobs.bytes.at(stored.tensors.at("blob/w.safetensors")), kTensors);
  EXPECT_THAT(frozen->warnings, ::testing::Contains(HasSubstr("w-stored stores 1 of 2 expected outputs")));
  workloads(R"({"type":"safetensors","path":"blob/w.safetensors","tensor_key":"q"})");
  EXPECT_THAT(error("[scale]"),
              AllOf(HasSubstr("scale: workload w-stored: inputs.x"), HasSubstr("no tensor `q`")));
  workloads(R"({"type":"safetensors","path":"blob/none.safetensors","tensor_key":"x"})");
  EXPECT_THAT(error("[scale]"), HasSubstr("none.safetensors"));
  workloads(R"({"type":"safetensors","path":"../mine.yaml","tensor_key":"x"})");
  EXPECT_THAT(error("[scale]"), HasSubstr("leaves the trace set's folder"));
  folder_.write("set/blob/short.safetensors",
                safetensors(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  workloads(R"({"type":"safetensors","path":"blob/short.safetensors","tensor_key":"x"})");
  EXPECT_THAT(error("[scale]"), HasSubstr("tensor `x` is float32 [2], the definition wants float32 [4]"));
  fs::create_symlink(folder_.path() / "mine.yaml", folder_.path() / "set/blob/link.safetensors");
  workloads(R"({"type":"safetensors","path":"blob/link.safetensors","tensor_key":"x"})");
  EXPECT_THAT(error("[scale]"), HasSubstr("leaves its folder through a link"));
}

TEST_F(Launch, PacksComposeAndCoverTheirProblems) {
  folder_.write("configs/packs/extra/pack.yaml", "fragments: [e.md]\n");
  folder_.write("configs/packs/extra/e.md", "Extra.\n");
  const auto frozen =
      freeze("[scale, gemm_f32_n512_k512]",
             "packs:\n  - {name: both, use: [cpu-base, extra], problems: [\"gemm_*\"]}\n  - extra\n");
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  EXPECT_TRUE(frozen->sweep.packs[0].text.ends_with("\nExtra.\n"));
  EXPECT_EQ(plan_jobs(frozen->sweep).size(), 3u);
  EXPECT_THAT(error("[scale]", "packs: [{name: a, use: [extra], problems: [\"gemm_*\"]}]\n"),
              HasSubstr("`gemm_*` matches no problem"));
  EXPECT_THAT(error("[scale, gemm_f32_n512_k512]", "packs: [{name: a, use: [extra], problems: [scale]}]\n"),
              HasSubstr("problem `gemm_f32_n512_k512` matches the `problems` of no pack"));
  EXPECT_THAT(error("[scale]", "packs: [extr]\n"),
              AllOf(HasSubstr("mine.yaml:5: packs[0].use[0]"), HasSubstr("did you mean `extra`?")));
  folder_.write("configs/packs/extra/pack.yaml", "fragments: [fixit_simd.h]\n");
  folder_.write("configs/packs/extra/fixit_simd.h", "// another\n");
  EXPECT_THAT(error("[scale]", "packs: [{name: a, use: [cpu-base, extra]}]\n"),
              HasSubstr("header fixit_simd.h differs"));
}

TEST_F(Launch, NamesOfFilesThatDoNotExistAreErrorsOfTheirLine) {
  EXPECT_THAT(error("[scale]", "fixit: {recipe: quikstart}\n"),
              AllOf(HasSubstr("mine.yaml:6: fixit.recipe"), HasSubstr("did you mean `quickstart`?")));
  folder_.write(
      "recipes/r.yaml",
      "failures: {statuses: [BANNED]}\nrepair: {model: quickstart-teacher}\nrationale: {model: nobody}\n");
  EXPECT_THAT(error("[scale]", "fixit: {recipe: r}\n"),
              HasSubstr("r.yaml:3: rationale.model: no model `nobody`"));
  fs::remove_all(folder_ / "configs/replies");
  EXPECT_THAT(error("[scale]"), HasSubstr("quickstart-replay.yaml: replies"));
}

TEST_F(Launch, AnEvaluationIsASweepOfOneKernelNamedByContent) {
  const std::string set = (folder_ / "set").string();
  const auto current = fs::current_path();
  fs::current_path(folder_.path());
  const auto one = freeze_evaluation("void run();", "scale", "cpu", set);
  const auto same = freeze_evaluation("void run();", "scale", "cpu", set);
  const auto other = freeze_evaluation("void run() {}", "scale", "cpu", set);
  const auto shipped = freeze_evaluation("void run();", "gemm_f32_n512_k512", "cpu", "");
  const auto unknown = freeze_evaluation("void run();", "scael", "cpu", set);
  const auto pattern = freeze_evaluation("void run();", "*", "cpu", set);
  fs::current_path(current);
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one->sweep.sweep.name.size(), std::string("eval-").size() + 16);
  EXPECT_EQ(one->sweep.sweep.name, same->sweep.sweep.name);
  EXPECT_NE(one->sweep.sweep.name, other->sweep.sweep.name);
  EXPECT_TRUE(shipped.ok()) << shipped.status().message();
  EXPECT_THAT(unknown.status().message(), HasSubstr("did you mean `scale`?"));
  EXPECT_FALSE(pattern.ok());
  EXPECT_EQ(one->blobs.bytes.at(one->sweep.evaluate_source), "void run();");
  const auto jobs = plan_jobs(one->sweep);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].lane.name(), "none@cpu");
  const auto payload = decode<JobPayload>(jobs[0].job.payload);
  EXPECT_EQ(payload->kind, JobKind::kEvaluate);
  EXPECT_EQ(payload->origin->failed_source, one->sweep.evaluate_source);
}

TEST_F(Launch, ThePlanBoundsCallsTokensAndMoney) {
  folder_.write(
      "configs/models/paid.yaml",
      "protocol: openai\nbase_url: https://example.com/v1\nmodel: m\nmax_tokens: 1000\ncontext_window: 5000\n"
      "usd_per_million_prompt: 2\nusd_per_million_completion: 10\n");
  const auto frozen =
      freeze_sweep(folder_.write("paid.yaml",
                                 "trace_sets: [set]\nproblems: [scale]\nmodels: [paid]\ngpus: [cpu]\npacks: "
                                 "[cpu-base]\nsamples: 10\nturns: 4\n"
                                 "fixit: {recipe: quickstart}\n"));
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  const Json plan = plan_to_json(frozen->sweep);
  EXPECT_EQ(plan["jobs"], 10);
  EXPECT_EQ(plan["lanes"]["paid@cpu"], 10);
  EXPECT_EQ(plan["at_most"]["model_calls"], 40);
  EXPECT_EQ(plan["at_most"]["tokens"], 40 * 5000);
  EXPECT_NEAR(plan["at_most"]["usd"].get<double>(), 40 * (4000 * 2 + 1000 * 10) / 1e6, 1e-9);
  EXPECT_EQ(plan["chain"]["failures"], 3);
  EXPECT_EQ(plan["chain"]["repair_calls"], 6);
  EXPECT_THAT(describe_plan(frozen->sweep),
              AllOf(HasSubstr("10 jobs"), HasSubstr("lane paid@cpu: 10 jobs"), HasSubstr("40 model calls")));
}

}  // namespace
}  // namespace fixit

// FlashInfer-Trace files: what is accepted, what is refused and how it is said, and that order is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "core/trace/solution.h"
#include "core/trace/trace_set.h"
#include "tests/support/mutation.h"
#include "tests/support/temporary_folder.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kDefinition =
    R"({"name":"axpb_f32_n256","op_type":"elementwise","description":"y = s*x + b",
 "axes":{"R":{"type":"var","description":"rows"},"N":{"type":"const","value":256}},
 "inputs":{"x":{"shape":["R","N"],"dtype":"float32"},"b":{"shape":["N"],"dtype":"float32"},
           "s":{"shape":null,"dtype":"float32"},"a0":{"shape":[],"dtype":"int32"}},
 "outputs":{"y":{"shape":["R","N"],"dtype":"float32"}},
 "reference":"import torch\n\ndef run(x, b, s, a0):\n    return s * x + b\n",
 "tags":["status:draft"],"constraints":["R > 0"],"unknown":1})";

constexpr std::string_view kWorkload = R"({"definition":"axpb_f32_n256","solution":null,"evaluation":null,
 "workload":{"uuid":"0d2b5a5e","axes":{"R":96,"N":256},"inputs":{"x":{"type":"random"},
 "b":{"type":"safetensors","path":"./blob/w0.safetensors","tensor_key":"b"},"s":{"type":"scalar","value":1.5}},
 "outputs":{"y":{"type":"safetensors","path":"./blob/w0.safetensors","tensor_key":"y"}}}})";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const size_t at = result.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return result.replace(at, from.size(), to);
}

std::string definition_error(std::string_view from, std::string_view to) {
  const auto parsed = parse_definition(replaced(kDefinition, from, to), "d.json");
  return parsed.ok() ? "accepted" : parsed.status().message();
}

TEST(Definition, KeepsTheOrderOfArguments) {
  const auto definition = parse_definition(kDefinition, "d.json");
  ASSERT_TRUE(definition.ok()) << definition.status().message();
  std::vector<std::string> names;
  for (const auto& input : definition->inputs) names.push_back(input.name);
  EXPECT_THAT(names, ElementsAre("x", "b", "s", "a0"));
  EXPECT_TRUE(definition->inputs[2].scalar);
  EXPECT_FALSE(definition->inputs[3].scalar);
  EXPECT_TRUE(definition->inputs[3].shape.empty());
  EXPECT_THAT(definition->var_axes(), ElementsAre("R"));
  EXPECT_EQ(definition->axis("N")->value, 256);
}

TEST(Definition, WrittenAndReadAgainIsTheSame) {
  const auto first = parse_definition(kDefinition, "d.json");
  ASSERT_TRUE(first.ok());
  const std::string written = write_definition(*first);
  const auto second = parse_definition(written, "written");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(write_definition(*second), written);
  EXPECT_EQ(second->reference, first->reference);
  EXPECT_EQ(second->constraints, first->constraints);
  EXPECT_EQ(second->inputs[0].name, "x");
}

TEST(Definition, ErrorsNameFileAndField) {
  EXPECT_THAT(definition_error(R"("shape":["N"])", R"("shape":["Z"])"),
              HasSubstr("d.json: inputs.b.shape: names axis `Z`"));
  EXPECT_THAT(definition_error("\"int32\"", "\"uint8\""),
              HasSubstr("inputs.a0.dtype: is `uint8`; accepted: float32"));
  EXPECT_THAT(definition_error("\"type\":\"var\"", "\"type\":\"expr\""), HasSubstr("axes.R.type"));
  EXPECT_THAT(definition_error("\"value\":256", "\"value\":-1"), HasSubstr("axes.N.value"));
  EXPECT_THAT(definition_error("\"tags\":[\"status:draft\"]", "\"tags\":null"), HasSubstr("tags"));
  EXPECT_THAT(definition_error("\"outputs\":{\"y\"", "\"outputs\":{\"x\""),
              HasSubstr("`x` is also the name of an input"));
  EXPECT_THAT(definition_error("def run", "async def run"), HasSubstr("reference"));
  EXPECT_THAT(definition_error("\"name\":\"axpb_f32_n256\"", "\"name\":\"../etc\""), HasSubstr("name"));
  EXPECT_THAT(definition_error("\"op_type\":\"elementwise\",", ""), HasSubstr("op_type: is missing"));
  EXPECT_THAT(definition_error("\"op_type\"", "\"name\":\"b\",\"op_type\""), HasSubstr("appears twice"));
}

TEST(Definition, TakesWhatTheSchemaLeavesOut) {
  EXPECT_EQ(definition_error("{\"type\":\"const\",\"value\":256}", "{\"value\":\"256\"}"), "accepted");
  EXPECT_EQ(definition_error("{\"type\":\"var\",\"description\":\"rows\"}", "{}"), "accepted");
}

TEST(Workload, ChecksAgainstItsDefinition) {
  const auto definition = parse_definition(kDefinition, "d.json");
  const auto check = [&](std::string_view from, std::string_view to) -> std::string {
    const auto workload = parse_workload(replaced(kWorkload, from, to), "w.jsonl:1");
    if (!workload.ok()) return workload.status().message();
    const Status status = check_workload(*definition, *workload, "w.jsonl:1");
    return status.ok() ? "accepted" : status.message();
  };
  EXPECT_EQ(check("96", "96"), "accepted");
  EXPECT_THAT(check("\"R\":96,", ""), HasSubstr("w.jsonl:1: axes.R: is missing"));
  EXPECT_THAT(check("96", "0"), HasSubstr("axes.R: must be at least 1"));
  EXPECT_THAT(check("96", "-1"), HasSubstr("axes.R"));
  EXPECT_THAT(check("96", "9000000000000000000"), HasSubstr("64 TiB"));
  EXPECT_THAT(check("\"x\":{\"type\":\"random\"}", "\"q\":{\"type\":\"random\"}"),
              HasSubstr("inputs.q: is not an input"));
  EXPECT_THAT(check("1.5", "true"), HasSubstr("inputs.s"));
  EXPECT_THAT(check("\"type\":\"random\"", "\"type\":\"zeros\""),
              HasSubstr("accepted: random, scalar, safetensors"));
  EXPECT_THAT(check(",\"s\":{\"type\":\"scalar\",\"value\":1.5}", ""),
              HasSubstr("inputs.s: is a scalar and needs a value"));
  EXPECT_THAT(check("./blob/", "../../"), HasSubstr("leaves the trace set's folder"));
  EXPECT_THAT(check("\"solution\":null", "\"solution\":\"s\""), HasSubstr("must be null"));
}

TEST(Workload, WrittenAndReadAgainIsTheSame) {
  const auto first = parse_workload(kWorkload, "w");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::string written = write_workload(*first);
  const auto second = parse_workload(written, "w");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(write_workload(*second), written);
  EXPECT_EQ(second->outputs.at("y").tensor_key, "y");
}

TEST(Workload, ResolvesShapesAndTrailingArguments) {
  const auto definition = parse_definition(kDefinition, "d");
  const auto workload = parse_workload(kWorkload, "w");
  const auto shape = resolve_shape(*definition, definition->inputs[0], *workload);
  ASSERT_TRUE(shape.ok());
  EXPECT_THAT(*shape, ElementsAre(96, 256));
  EXPECT_THAT(var_axis_values(*definition, *workload), ElementsAre(96));
}

TEST(TraceSet, LoadsTheCpuProblems) {
  const auto set = load_trace_set(std::filesystem::path(FIXIT_SOURCE_DIR) / "configs/traces/cpu");
  ASSERT_TRUE(set.ok()) << set.status().message();
  std::vector<std::string> names;
  for (const auto& problem : *set) {
    names.push_back(problem.definition.name);
    EXPECT_EQ(problem.workloads.size(), 1u) << problem.definition.name;
    EXPECT_EQ(problem.workload_jsons.size(), problem.workloads.size());
  }
  EXPECT_THAT(names, ElementsAre("attention_f32_d64", "attention_f32_d64_causal", "gemm_f32_n512_k512",
                                 "rmsnorm_f32_n4096"));
}

TEST(TraceSet, ErrorsNameFileAndLine) {
  const testing::TemporaryFolder folder;
  folder.write("definitions/e/axpb.json", kDefinition);
  const std::string line = replaced(replaced(replaced(kWorkload, "\n", ""), "\n", ""), "\n", "");
  folder.write("workloads/e/axpb.jsonl", line + "\n\n" + line + "\n");
  EXPECT_THAT(load_trace_set(folder.path()).status().message(),
              HasSubstr("axpb.jsonl:3: uuid: `0d2b5a5e` exists already"));
  folder.write("workloads/e/axpb.jsonl", replaced(line, "axpb_f32_n256", "other") + "\n");
  EXPECT_THAT(load_trace_set(folder.path()).status().message(),
              HasSubstr("axpb.jsonl:1: definition: `other`"));
  folder.write("workloads/e/axpb.jsonl", line + "\r\n");
  EXPECT_TRUE(load_trace_set(folder.path()).ok()) << load_trace_set(folder.path()).status().message();
  folder.write("definitions/f/again.json", kDefinition);
  EXPECT_THAT(load_trace_set(folder.path()).status().message(), HasSubstr("exists already in"));
  EXPECT_EQ(load_trace_set(folder.path() / "nothing").status().code(), ErrorCode::kNotFound);
}

TEST(Solution, RoundTripsAndRefusesPathsThatClimb) {
  Solution solution;
  solution.name = "cand_t3";
  solution.definition = "axpb_f32_n256";
  solution.author = "rollout-17";
  solution.language = "cpp";
  solution.binding = "c";
  solution.target_hardware = {"cpu"};
  solution.entry_point = "kernel.cpp::run";
  solution.sources = {{"kernel.cpp", "// demo\n"}};
  const std::string written = write_solution(solution);
  const auto parsed = parse_solution(written, "s.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(write_solution(*parsed), written);
  for (const auto& [from, to, field] :
       {std::tuple("\"path\": \"kernel.cpp\"", "\"path\": \"../kernel.cpp\"", "sources[0].path"),
        std::tuple("kernel.cpp::run", "kernel.cpp", "spec.entry_point"),
        std::tuple("kernel.cpp::run", "other.cpp::run", "spec.entry_point"),
        std::tuple("\"cpp\"", "\"rust\"", "spec.language")})
    EXPECT_THAT(parse_solution(replaced(written, from, to), "s.json").status().message(), HasSubstr(field));
}

TEST(Trace, HoldsMeasuresAsTheStatusWants) {
  Trace trace;
  trace.definition = "axpb_f32_n256";
  trace.workload_json = write_workload(*parse_workload(kWorkload, "w"));
  trace.solution = "cand_t3";
  trace.evaluation = TraceEvaluation{.status = "PASSED",
                                     .hardware = "CPU",
                                     .libraries = {{"openblas", "0.3"}},
                                     .timestamp = "2026-03-02T10:15:00",
                                     .log = "",
                                     .max_relative_error = std::numeric_limits<double>::infinity(),
                                     .max_absolute_error = 1e-6,
                                     .latency_ms = 2.0,
                                     .reference_latency_ms = 3.0,
                                     .speedup_factor = 1.5};
  const std::string written = write_trace(trace);
  EXPECT_EQ(written.find('\n'), std::string::npos);
  const auto parsed = parse_trace(written, "t.jsonl:1");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(write_trace(*parsed), written);
  EXPECT_EQ(parsed->evaluation->speedup_factor, 1.5);
  EXPECT_THAT(parse_trace(replaced(written, "PASSED", "TIMEOUT"), "t").status().message(),
              HasSubstr("evaluation.correctness: must be null"));
  EXPECT_THAT(parse_trace(replaced(written, "PASSED", "FINE"), "t").status().message(),
              HasSubstr("evaluation.status"));
}

TEST(Definition, ManyKeysAreRefusedAtOnce) {
  std::string axes;
  for (int i = 0; i < 200000; ++i) axes += "\"a" + std::to_string(i) + "\":{},";
  EXPECT_THAT(definition_error("\"axes\":{", "\"axes\":{" + axes), HasSubstr("more than 4096 keys"));
}

TEST(Trace, DamagedDocumentsGiveErrorsAndNothingWorse) {
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto definition = parse_definition(mutated(std::string(kDefinition), random), "d");
    if (definition.ok()) {
      EXPECT_TRUE(parse_definition(write_definition(*definition), "again").ok());
    } else {
      EXPECT_FALSE(definition.status().message().empty());
    }
    refused += definition.ok() ? 0 : 1;
    const auto workload = parse_workload(mutated(std::string(kWorkload), random), "w");
    if (workload.ok()) {
      EXPECT_TRUE(parse_workload(write_workload(*workload), "again").ok());
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace fixit

#include "worker/prompt/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"

namespace fixit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

FrozenProblem problem() {
  FrozenProblem problem;
  problem.name = "scaled_rows";
  problem.definition = R"({
    "name": "scaled_rows", "op_type": "scale", "tags": ["secret-tag"],
    "axes": {"S": {"type": "var"}, "N": {"type": "const", "value": 8}, "M": {"type": "var"}},
    "inputs": {
      "X": {"shape": ["S", "M", "N"], "dtype": "float32"},
      "scale": {"shape": null, "dtype": "float32"},
      "rows": {"shape": null, "dtype": "int64"},
      "cut": {"shape": null, "dtype": "int32"},
      "flip": {"shape": null, "dtype": "bool"},
      "bias": {"shape": [], "dtype": "float32"},
      "H": {"shape": ["M"], "dtype": "float16"},
      "A": {"shape": ["M"], "dtype": "int8"}},
    "outputs": {"Y": {"shape": ["S", "M", "N"], "dtype": "float32"}, "Q": {"shape": ["M"], "dtype": "int32"}},
    "reference": "def run(X, scale, rows, cut, flip, bias, H, A):\n    return X, X\n"
  })";
  problem.workloads.push_back(
      {"one",
       R"({"uuid": "one", "axes": {"S": 3, "M": 1237}, "inputs": {"scale": {"type": "scalar", "value": 0.25},
        "rows": {"type": "scalar", "value": 5}, "cut": {"type": "scalar", "value": 2},
        "flip": {"type": "scalar", "value": true}, "X": {"type": "random"}, "bias": {"type": "random"},
        "H": {"type": "random"}, "A": {"type": "random"}}})",
       {}});
  return problem;
}

TEST(Prompt, DeclaresTheEntryPointInTheDefinitionsOrder) {
  const auto declaration = entry_point_declaration(problem());
  ASSERT_TRUE(declaration.ok()) << declaration.status().to_string();
  EXPECT_EQ(*declaration,
            "extern \"C\" void run(const float* X, float scale, int64_t rows, int32_t cut, bool flip, const "
            "float* bias, "
            "const uint16_t* H, const int8_t* A, float* Y, int32_t* Q, int64_t S, int64_t M);");
}

TEST(Prompt, TaskHasEveryVariableAxisTheDefinitionInOrderAndNoTags) {
  GpuConfig gpu;
  gpu.tolerance = 0.02;
  const auto task = task_message(problem(), gpu, 1.5);
  ASSERT_TRUE(task.ok()) << task.status().to_string();
  EXPECT_THAT(
      *task,
      AllOf(HasSubstr("S = 3"), HasSubstr("M = 1237"), HasSubstr("scale = 0.25"), HasSubstr("flip = true"),
            HasSubstr("0.02 + 0.02"), HasSubstr("1.500 times"), HasSubstr("extern \"C\" void run("),
            HasSubstr("float16: elements are given as their bits"), Not(HasSubstr("secret-tag"))));
  EXPECT_LT(task->find("\"S\": {"), task->find("\"N\": {"));
  EXPECT_LT(task->find("\"X\": {"), task->find("\"A\": {"));
}

TEST(Prompt, AShippedProblemHasATaskWithItsAxes) {
  FrozenProblem gemm;
  gemm.name = "gemm_f32_n512_k512";
  const std::string folder = FIXIT_SOURCE_DIR "/configs/traces/cpu/definitions/gemm/";
  auto text = read_file(folder + gemm.name + ".json");
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  gemm.definition = *text;
  gemm.workloads.push_back({"u", R"({"uuid": "u", "axes": {"M": 77}, "inputs": {}})", {}});
  const auto task = task_message(gemm, GpuConfig{}, 1.2);
  ASSERT_TRUE(task.ok()) << task.status().to_string();
  EXPECT_THAT(*task, HasSubstr("M = 77"));
}

TEST(Prompt, RefusesABrokenDefinitionByName) {
  FrozenProblem broken = problem();
  broken.definition = "{";
  EXPECT_THAT(task_message(broken, GpuConfig{}, 1).status().message(), HasSubstr("scaled_rows"));
}

TEST(Prompt, NamesTheScalarThatCannotBePassed) {
  FrozenProblem odd = problem();
  const std::string from = R"("scale": {"shape": null, "dtype": "float32"})";
  odd.definition.replace(odd.definition.find(from), from.size(),
                         R"("scale": {"shape": null, "dtype": "float16"})");
  const auto declaration = entry_point_declaration(odd);
  ASSERT_FALSE(declaration.ok());
  EXPECT_THAT(declaration.status().message(), HasSubstr("scale"));
}

TEST(Prompt, SystemMessageIsThePackThenTheTarget) {
  GpuConfig gpu;
  gpu.arch = "x86-64-v3";
  gpu.compile_flags = {"-ffast-math"};
  FrozenPack pack;
  pack.text = "PACK TEXT\n";
  const std::string text = system_message(pack, gpu);
  EXPECT_EQ(text.find("PACK TEXT"), 0u);
  EXPECT_THAT(text, AllOf(HasSubstr("-march=x86-64-v3"), HasSubstr("-ffast-math"), HasSubstr("fma")));
}

TEST(Prompt, RepairHoldsTaskKernelAndFeedback) {
  EXPECT_THAT(repair_message("THE TASK", "int failed; // ```` in it\n", "THE FEEDBACK"),
              AllOf(HasSubstr("THE TASK"), HasSubstr("`````cpp\nint failed;"), HasSubstr("THE FEEDBACK")));
}

TEST(Prompt, RationaleAsksForTheLimitsAndARewrite) {
  RationaleStage limits;
  limits.min_chars = 123;
  limits.max_chars = 4567;
  limits.forbidden = {"ground truth"};
  const std::string first = rationale_message("TASK", "FAILED", "FEEDBACK", "REPAIRED", limits, "", "");
  EXPECT_THAT(first, AllOf(HasSubstr("TASK"), HasSubstr("FAILED"), HasSubstr("FEEDBACK"),
                           HasSubstr("REPAIRED"), HasSubstr("123"), HasSubstr("4567"),
                           HasSubstr("ground truth"), HasSubstr("<rationale>"), Not(HasSubstr("refused"))));
  EXPECT_THAT(rationale_message("TASK", "FAILED", "FEEDBACK", "REPAIRED", limits, "MY OLD TEXT", "too_long"),
              AllOf(HasSubstr("refused"), HasSubstr("MY OLD TEXT"), HasSubstr("too_long")));
}

}  // namespace
}  // namespace fixit

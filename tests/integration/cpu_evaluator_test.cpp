// Whole evaluations of candidates that the real compiler made: one for each status that the CPU target gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "profiler/target/cpu/cpu_evaluator.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kSeed = 20260101;

const std::string kGemm = R"({"name": "gemm_test", "op_type": "gemm", "description": "C = A B^T",
  "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 48}, "K": {"type": "const", "value": 64}},
  "inputs": {"A": {"shape": ["M", "K"], "dtype": "float32"}, "B": {"shape": ["N", "K"], "dtype": "float32"}},
  "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
  "reference": "import torch\n\ndef run(A, B):\n    return torch.matmul(A, B.T)\n"})";

FrozenWorkload workload(int m) {
  const std::string uuid = "m" + std::to_string(m);
  return {uuid,
          R"({"uuid": ")" + uuid + R"(", "axes": {"M": )" + std::to_string(m) +
              R"(}, "inputs": {"A": {"type": "random"}, "B": {"type": "random"}}})",
          {}};
}

const std::string kLoop =
    "for (long i = 0; i < m; ++i) for (long j = 0; j < 48; ++j) { float s = 0; for (long k = 0; k < 64; ++k) "
    "s += a[i * 64 + k] * b[j * 64 + k]; c[i * 48 + j] = s; }";
// With an explicit multiply-add: whether the compiler fuses kLoop's is its tuning's business.
const std::string kFmaLoop =
    "for (long i = 0; i < m; ++i) for (long j = 0; j < 48; ++j) { float s = 0; for (long k = 0; k < 64; ++k) "
    "s = __builtin_fmaf(a[i * 64 + k], b[j * 64 + k], s); c[i * 48 + j] = s; }";
std::string kernel(const std::string& body, const std::string& before = "") {
  return before + "\nextern \"C\" void run(const float* a, const float* b, float* c, long m) { " + body +
         " }";
}

std::string compile(const std::string& source, const std::string& flags) {
  char pattern[] = "/tmp/fixit-evaluator-test-XXXXXX";
  const fs::path folder = mkdtemp(pattern);
  std::ofstream(folder / "kernel.cpp") << source;
  const std::string command = "cd " + folder.string() +
                              " && g++ -O2 -march=x86-64-v3 -w -std=c++20 -shared -fPIC " + flags +
                              " -o kernel.so kernel.cpp";
  EXPECT_EQ(system(command.c_str()), 0) << source;
  std::ifstream file(folder / "kernel.so", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  fs::remove_all(folder);
  return bytes;
}

class CpuEvaluatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.key = sha256("request");
    request_.gpu = "cpu";
    request_.target.name = "cpu";
    request_.target.warmup_calls = 2;
    request_.target.timed_calls = 8;
    request_.target.call_deadline_min_s = 3;
    request_.definition = kGemm;
    request_.workloads = {workload(32)};
    auto made = make_cpu_evaluator(request_.target, "profiler-1",
                                   {fs::path(FIXIT_BINARY_DIR) / "fixit-cpu-runner", kSeed});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    evaluator_ = std::move(*made);
  }

  Verdict evaluate(const std::string& source, const std::string& flags = "") {
    request_.artifact = *blobs_->put(compile(source, flags));
    return evaluator_->evaluate(request_, *blobs_, cancelled_);
  }

  std::unique_ptr<BlobStore> blobs_ = make_memory_store();
  std::unique_ptr<Evaluator> evaluator_;
  std::atomic<bool> cancelled_{false};
  ProfileRequest request_;
};

TEST_F(CpuEvaluatorTest, SaysEverythingOfACorrectKernelWithFma) {
  request_.workloads = {workload(4)};  // 12288 multiply-adds: few enough to be counted exactly
  const Verdict verdict = evaluate(kernel(kFmaLoop));
  ASSERT_EQ(verdict.status, TurnStatus::kCorrect) << verdict.check << ": " << verdict.evidence;
  EXPECT_EQ(verdict.request_key, request_.key);
  EXPECT_EQ(verdict.seed, kSeed);
  EXPECT_EQ(verdict.isolation, "process");
  EXPECT_THAT(verdict.sandbox, HasSubstr("seccomp"));
  EXPECT_THAT(verdict.baseline, HasSubstr("sgemm"));
  EXPECT_EQ(verdict.environment.profiler, "profiler-1");
  EXPECT_FALSE(verdict.environment.device.empty());
  ASSERT_EQ(verdict.workloads.size(), 1u);
  const WorkloadVerdict& result = verdict.workloads[0];
  EXPECT_EQ(result.status, TurnStatus::kCorrect);
  EXPECT_EQ(result.axes.at("M"), 4);
  EXPECT_EQ(result.calls, 1 + 2 + 8 + 1);
  ASSERT_TRUE(result.latency && result.reference_latency && result.speedup && verdict.speedup);
  EXPECT_EQ(result.latency->samples, 8);
  EXPECT_EQ(result.reference_latency->samples, 8);
  EXPECT_GT(result.latency->median_ms, 0);
  EXPECT_DOUBLE_EQ(*verdict.speedup, result.reference_latency->median_ms / result.latency->median_ms);
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_EQ(result.outputs[0].mismatched, 0);
  EXPECT_EQ(result.outputs[0].elements, 4 * 48);
  EXPECT_FALSE(result.fixed_inputs);
  for (const char* stage : {"static", "fetch", "correctness", "timing", "instructions", "total"})
    EXPECT_GT(verdict.stage_ms.at(stage), 0) << stage;
  if (!evaluator_->capability().proves_instructions) GTEST_SKIP() << "this machine forbids tracing";
  EXPECT_EQ(verdict.instructions.verdict, InstructionVerdict::kYes) << verdict.instructions.reason;
  ASSERT_TRUE(verdict.instructions.work_fraction.has_value());
  EXPECT_NEAR(*verdict.instructions.work_fraction, 1, 0.01);  // a multiply-add for every product
}

TEST_F(CpuEvaluatorTest, EndsAProofThatWouldCountTooMuch) {
  if (!evaluator_->capability().proves_instructions) GTEST_SKIP() << "this machine forbids tracing";
  const Verdict verdict = evaluate(kernel(kFmaLoop));  // 98304 multiply-adds
  EXPECT_EQ(verdict.instructions.verdict, InstructionVerdict::kYes) << verdict.instructions.reason;
  EXPECT_TRUE(verdict.instructions.capped);
  EXPECT_FALSE(verdict.instructions.work_fraction.has_value());
}

TEST_F(CpuEvaluatorTest, TellsKernelsWithoutAndWithTokenInstructions) {
  if (!evaluator_->capability().proves_instructions) GTEST_SKIP() << "this machine forbids tracing";
  const Verdict none = evaluate(kernel(kLoop), "-ffp-contract=off");
  EXPECT_EQ(none.status, TurnStatus::kCorrect) << none.evidence;
  EXPECT_EQ(none.instructions.verdict, InstructionVerdict::kNo);
  EXPECT_EQ(none.instructions.static_sites, 0u);
  const Verdict skipped =
      evaluate(kernel(kLoop + " if (m < 0) c[0] = __builtin_fmaf(a[0], b[0], c[0]);"), "-ffp-contract=off");
  EXPECT_EQ(skipped.instructions.verdict, InstructionVerdict::kNo) << skipped.instructions.reason;
  EXPECT_GT(skipped.instructions.static_sites, 0u);
  const Verdict token =
      evaluate(kernel(kLoop + " c[0] = __builtin_fmaf(a[0], 1e-6f, c[0]);"), "-ffp-contract=off");
  EXPECT_EQ(token.status, TurnStatus::kCorrect) << token.evidence;
  EXPECT_EQ(token.instructions.verdict, InstructionVerdict::kToken) << token.instructions.reason;
  EXPECT_EQ(token.instructions.executed, 1u);
  EXPECT_LT(*token.instructions.work_fraction, 0.001);
}

TEST_F(CpuEvaluatorTest, ShowsWhereAWrongKernelIsWrong) {
  const Verdict verdict = evaluate(kernel(kLoop + " c[3 * 48 + 5] += 1;"));
  ASSERT_EQ(verdict.status, TurnStatus::kIncorrectNumerical) << verdict.evidence;
  ASSERT_EQ(verdict.workloads.size(), 1u);
  const OutputComparison& output = verdict.workloads[0].outputs.at(0);
  EXPECT_EQ(output.mismatched, 1);
  EXPECT_NEAR(output.max_abs_error, 1, 1e-3);
  EXPECT_EQ(output.first_mismatches.at(0).index, (std::vector<int64_t>{3, 5}));
  EXPECT_FALSE(verdict.speedup.has_value());
  EXPECT_FALSE(verdict.workloads[0].latency.has_value());
}

TEST_F(CpuEvaluatorTest, SaysThatOutputsWereNotWritten) {
  const Verdict verdict = evaluate(kernel("for (long i = 0; i < 10; ++i) c[i] = 0;"));
  EXPECT_EQ(verdict.status, TurnStatus::kIncorrectNumerical);
  EXPECT_THAT(verdict.evidence, HasSubstr("1526 elements were not written"));
}

TEST_F(CpuEvaluatorTest, ReportsAWriteBeyondTheOutputAsARuntimeError) {
  const Verdict verdict = evaluate(kernel(kLoop + " c[m * 48] = 1;"));
  ASSERT_EQ(verdict.status, TurnStatus::kRuntimeError) << verdict.evidence;
  ASSERT_TRUE(verdict.fault.has_value());
  EXPECT_THAT(verdict.evidence, HasSubstr("past the end of output C"));
}

TEST_F(CpuEvaluatorTest, ReportsAHangAsATimeout) {
  request_.target.call_deadline_min_s = 0.2;
  request_.target.call_deadline_factor = 1;
  const Verdict verdict = evaluate(kernel("for (volatile long i = 0;;) i = i + 1;"));
  EXPECT_EQ(verdict.status, TurnStatus::kKernelTimeout) << verdict.evidence;
  ASSERT_TRUE(verdict.fault.has_value());
  EXPECT_EQ(verdict.fault->kind, "hang");
}

TEST_F(CpuEvaluatorTest, RefusesABannedSymbolWithoutStartingAProcess) {
  const Verdict verdict =
      evaluate(kernel("dlopen(0, 1); " + kLoop, "extern \"C\" void* dlopen(const char*, int);"));
  EXPECT_EQ(verdict.status, TurnStatus::kBanned);
  EXPECT_THAT(verdict.evidence, HasSubstr("dlopen"));
  EXPECT_FALSE(verdict.stage_ms.contains("correctness"));
}

TEST_F(CpuEvaluatorTest, RejectsOutputsOfAnEarlierCall) {
  const Verdict verdict =
      evaluate(kernel("if (seen++) { for (long i = 0; i < m * 48; ++i) c[i] = kept[i]; return; } " + kLoop +
                          " for (long i = 0; i < m * 48; ++i) kept[i] = c[i];",
                      "static float kept[48 * 48]; static int seen;"));
  EXPECT_EQ(verdict.status, TurnStatus::kRejected) << verdict.evidence;
  EXPECT_EQ(verdict.check, "stale or cached output");
}

TEST_F(CpuEvaluatorTest, RejectsAKernelThatStopsWriting) {
  const Verdict verdict = evaluate(kernel("if (seen++ > 3) return; " + kLoop, "static int seen;"));
  EXPECT_EQ(verdict.status, TurnStatus::kRejected) << verdict.evidence;
  EXPECT_THAT(verdict.evidence, HasSubstr("was not written, after 4 correct calls"));
}

TEST_F(CpuEvaluatorTest, FindsErrorsOfLaterCalls) {
  const Verdict verdict = evaluate(kernel(kLoop + " if (seen++ == 4) c[0] += 1;", "static int seen;"));
  EXPECT_EQ(verdict.status, TurnStatus::kIncorrectNumerical) << verdict.check;
  ASSERT_EQ(verdict.workloads.size(), 1u);
  EXPECT_EQ(verdict.workloads[0].outputs.at(0).call, 5);  // the first process made call 0
}

TEST_F(CpuEvaluatorTest, GivesTheStatusOfTheFirstWorkloadThatFailsAndTheLeastSpeedup) {
  request_.workloads = {workload(8), workload(40)};
  const Verdict good = evaluate(kernel(kLoop));
  ASSERT_EQ(good.status, TurnStatus::kCorrect) << good.evidence;
  ASSERT_EQ(good.workloads.size(), 2u);
  EXPECT_DOUBLE_EQ(*good.speedup, std::min(*good.workloads[0].speedup, *good.workloads[1].speedup));
  const Verdict bad = evaluate(kernel(kLoop + " if (m > 8) c[0] = 7777;"));
  EXPECT_EQ(bad.status, TurnStatus::kIncorrectNumerical);
  ASSERT_EQ(bad.workloads.size(), 2u);
  EXPECT_EQ(bad.workloads[0].status, TurnStatus::kCorrect);
  EXPECT_EQ(bad.workloads[1].status, TurnStatus::kIncorrectNumerical);
}

TEST_F(CpuEvaluatorTest, BlamesTheSiteWhereNothingSaysWhatIsRight) {
  const size_t at = request_.definition.find("\"gemm\",");
  request_.definition.replace(at, 7, "\"other\",");
  const Verdict verdict = evaluate(kernel(kLoop));
  EXPECT_EQ(verdict.status, TurnStatus::kInfra);
  EXPECT_EQ(verdict.check, "no reference");
  EXPECT_THAT(verdict.evidence, HasSubstr("(A, B)"));
}

TEST_F(CpuEvaluatorTest, EndsWhenCancelledOrWithoutItsArtifact) {
  cancelled_ = true;
  const Verdict cancelled = evaluate(kernel(kLoop));
  EXPECT_EQ(cancelled.status, TurnStatus::kInfra);
  EXPECT_EQ(cancelled.check, "cancelled");
  request_.artifact = sha256("not stored");
  const Verdict missing = evaluator_->evaluate(request_, *blobs_, cancelled_);
  EXPECT_EQ(missing.status, TurnStatus::kInfra);
  EXPECT_EQ(missing.check, "artifact");
}

// A safetensors file of one float32 tensor.
std::string safetensors(const std::string& key, const std::string& shape, const std::vector<float>& values) {
  const std::string header = "{\"" + key + "\":{\"dtype\":\"F32\",\"shape\":" + shape +
                             ",\"data_offsets\":[0," + std::to_string(values.size() * 4) + "]}}";
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return file;
}

TEST_F(CpuEvaluatorTest, ComparesStoredInputsWithStoredOutputs) {
  const size_t at = request_.definition.find("\"gemm\",");
  request_.definition.replace(at, 7, "\"other\",");  // no reference operator fits
  FrozenWorkload stored;
  stored.uuid = "stored";
  const auto place = [&](const std::string& name, const std::string& shape,
                         const std::vector<float>& values) {
    stored.tensors["blob/" + name + ".safetensors"] = *blobs_->put(safetensors(name, shape, values));
    return "{\"type\": \"safetensors\", \"path\": \"blob/" + name + ".safetensors\", \"tensor_key\": \"" +
           name + "\"}";
  };
  const std::string a = place("A", "[2,64]", std::vector<float>(2 * 64, 0.5f));
  const std::string b = place("B", "[48,64]", std::vector<float>(48 * 64, 2.0f));
  const std::string c = place("C", "[2,48]", std::vector<float>(2 * 48, 64.0f));
  stored.json = R"({"uuid": "stored", "axes": {"M": 2}, "inputs": {"A": )" + a + R"(, "B": )" + b +
                R"(}, "outputs": {"C": )" + c + "}}";
  request_.workloads = {stored};
  const Verdict verdict = evaluate(kernel(kLoop));
  ASSERT_EQ(verdict.status, TurnStatus::kCorrect) << verdict.check << ": " << verdict.evidence;
  EXPECT_EQ(verdict.baseline, "none");
  EXPECT_FALSE(verdict.speedup.has_value());
  EXPECT_TRUE(verdict.workloads[0].fixed_inputs);
  EXPECT_FALSE(verdict.workloads[0].reference_latency.has_value());
  EXPECT_EQ(evaluate(kernel("for (long i = 0; i < m * 48; ++i) c[i] = 65;")).status,
            TurnStatus::kIncorrectNumerical);
}

TEST(CpuEvaluatorStart, RefusesWhatTheMachineCannotDo) {
  GpuConfig gpu;
  gpu.name = "cpu";
  gpu.arch = "no-such-arch";
  const auto arch = make_cpu_evaluator(gpu, "p", {fs::path(FIXIT_BINARY_DIR) / "fixit-cpu-runner", {}});
  ASSERT_FALSE(arch.ok());
  EXPECT_EQ(arch.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(arch.status().message(), HasSubstr("x86-64-v3"));
  gpu.arch = "x86-64";
  gpu.cores = 100000;
  EXPECT_EQ(
      make_cpu_evaluator(gpu, "p", {fs::path(FIXIT_BINARY_DIR) / "fixit-cpu-runner", {}}).status().code(),
      ErrorCode::kUnsupported);
  gpu.cores = 1;
  EXPECT_EQ(make_cpu_evaluator(gpu, "p", {"/no/such/runner", {}}).status().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace fixit

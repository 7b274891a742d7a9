#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/trace/trace_set.h"
#include "profiler/reference/matrix_product.h"
#include "profiler/reference/operators.h"
#include "profiler/reference/pinned_crew.h"
#include "profiler/reference/row_loops.h"

namespace fixit {
namespace {

using Floats = std::vector<float>;

Floats random_floats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Runs all parts of an operator, as a crew would.
void run_parts(ReferenceOperator& reference, std::vector<const float*> inputs, std::vector<float*> outputs,
               int parts) {
  for (int part = 0; part < parts; ++part) reference.run(inputs, outputs, part, parts);
}

std::vector<const MatrixProduct*> products() {
  std::vector<const MatrixProduct*> all = {&plain_product()};
  if (openblas_product() != nullptr) all.push_back(openblas_product());
  return all;
}

TEST(MatrixProduct, ComputesWhatDoublePrecisionDoes) {
  for (const MatrixProduct* product : products())
    EXPECT_TRUE(check_product(*product).ok()) << product->name();
}

TEST(MatrixProduct, CheckFindsAWrongElement) {
  class OffByOneElement final : public MatrixProduct {
    void times_transposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                          int64_t ldb, float* c, int64_t ldc) const override {
      plain_product().times_transposed(m, n, k, a, lda, b, ldb, c, ldc);
      c[(m - 1) * ldc + n - 1] += 0.01f;
    }
    void times(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
               float* c, int64_t ldc) const override {
      plain_product().times(m, n, k, a, lda, b, ldb, c, ldc);
    }
    std::string name() const override { return "off by one element"; }
  };
  const Status status = check_product(OffByOneElement());
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_NE(status.message().find("[0, 0]"), std::string::npos);
}

TEST(Gemm, IsATimesBTransposedForAnySplit) {
  for (const MatrixProduct* product : products())
    for (const GemmShape shape :
         {GemmShape{1, 1, 1}, GemmShape{37, 20, 65}, GemmShape{5, 90, 33}, GemmShape{3, 2, 7}})
      for (const int parts : {1, 3}) {
        const Floats a = random_floats(shape.m * shape.k, 1), b = random_floats(shape.n * shape.k, 2);
        Floats c(static_cast<size_t>(shape.m * shape.n), std::nanf(""));
        auto gemm = make_gemm(shape, *product);
        run_parts(*gemm, {a.data(), b.data()}, {c.data()}, parts);
        for (int64_t i = 0; i < shape.m; ++i)
          for (int64_t j = 0; j < shape.n; ++j) {
            double expected = 0;
            for (int64_t p = 0; p < shape.k; ++p)
              expected += static_cast<double>(a[static_cast<size_t>(i * shape.k + p)]) *
                          static_cast<double>(b[static_cast<size_t>(j * shape.k + p)]);
            ASSERT_NEAR(c[static_cast<size_t>(i * shape.n + j)], expected, 1e-4)
                << product->name() << i << "," << j;
          }
        EXPECT_DOUBLE_EQ(gemm->flops(), 2.0 * static_cast<double>(shape.m * shape.n * shape.k));
      }
}

struct DoubleAttention {
  std::vector<double> o, lse;
  double pairs = 0;
};

DoubleAttention attention_in_double(const AttentionShape& s, const Floats& q, const Floats& k,
                                    const Floats& v) {
  DoubleAttention result;
  for (int64_t head = 0; head < s.batch * s.heads; ++head) {
    const int64_t batch = head / s.heads;
    const int64_t group = head % s.heads * s.kv_heads / s.heads;
    const int64_t kv = (batch * s.kv_heads + group) * s.keys * s.depth;
    for (int64_t i = 0; i < s.queries; ++i) {
      std::vector<double> weight;
      double sum = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        double score = 0;
        for (int64_t d = 0; d < s.depth; ++d)
          score += static_cast<double>(q[static_cast<size_t>((head * s.queries + i) * s.depth + d)]) *
                   static_cast<double>(k[static_cast<size_t>(kv + j * s.depth + d)]);
        const bool seen = !s.causal || j <= i + s.keys - s.queries;
        weight.push_back(seen ? std::exp(score / std::sqrt(static_cast<double>(s.depth))) : 0.0);
        sum += weight.back();
        result.pairs += seen ? 1 : 0;
      }
      result.lse.push_back(std::log(sum));
      for (int64_t d = 0; d < s.depth; ++d) {
        double value = 0;
        for (int64_t j = 0; j < s.keys; ++j)
          value += weight[static_cast<size_t>(j)] / sum *
                   static_cast<double>(v[static_cast<size_t>(kv + j * s.depth + d)]);
        result.o.push_back(value);
      }
    }
  }
  return result;
}

TEST(Attention, IsSoftmaxAttentionWithCausalAndGroupedHeads) {
  const AttentionShape shapes[] = {{2, 3, 3, 70, 70, 16, false, true},
                                   {1, 4, 2, 130, 130, 24, true, true},
                                   {1, 2, 1, 5, 90, 8, true, false},
                                   {1, 1, 1, 1, 1, 4, false, true}};
  for (const MatrixProduct* product : products())
    for (const AttentionShape& s : shapes)
      for (const int parts : {1, 2}) {
        const Floats q = random_floats(s.batch * s.heads * s.queries * s.depth, 1);
        const Floats k = random_floats(s.batch * s.kv_heads * s.keys * s.depth, 2);
        const Floats v = random_floats(s.batch * s.kv_heads * s.keys * s.depth, 3);
        Floats o(q.size(), std::nanf("")),
            lse(static_cast<size_t>(s.batch * s.heads * s.queries), std::nanf(""));
        auto attention = make_attention(s, *product, parts);
        run_parts(*attention, {q.data(), k.data(), v.data()}, {o.data(), lse.data()}, parts);
        const DoubleAttention expected = attention_in_double(s, q, k, v);
        for (size_t i = 0; i < o.size(); ++i)
          ASSERT_NEAR(o[i], expected.o[i], 1e-4) << product->name() << " O " << i;
        for (size_t i = 0; s.lse && i < lse.size(); ++i)
          ASSERT_NEAR(lse[i], expected.lse[i], 1e-4) << "LSE " << i;
        EXPECT_DOUBLE_EQ(attention->flops(), 4.0 * expected.pairs * static_cast<double>(s.depth));
      }
}

TEST(Rmsnorm, DividesByTheRootMeanSquare) {
  const RmsnormShape shape{7, 100, 1e-2f};
  const Floats x = random_floats(shape.rows * shape.width, 1), w = random_floats(shape.width, 2);
  Floats y(x.size(), std::nanf(""));
  auto rmsnorm = make_rmsnorm(shape);
  run_parts(*rmsnorm, {x.data(), w.data()}, {y.data()}, 2);
  for (int64_t row = 0; row < shape.rows; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < shape.width; ++i)
      squares += std::pow(static_cast<double>(x[static_cast<size_t>(row * shape.width + i)]), 2);
    for (int64_t i = 0; i < shape.width; ++i) {
      const size_t at = static_cast<size_t>(row * shape.width + i);
      const double expected = static_cast<double>(x[at]) / std::sqrt(squares / 100 + 1e-2) *
                              static_cast<double>(w[static_cast<size_t>(i)]);
      ASSERT_NEAR(y[at], expected, 1e-5);
    }
  }
}

TEST(MakeReference, FitsEveryWorkloadOfTheShippedProblems) {
  const auto problems = load_trace_set(std::string(FIXIT_SOURCE_DIR) + "/configs/traces/cpu");
  ASSERT_TRUE(problems.ok()) << problems.status().to_string();
  double full_flops = 0, causal_flops = 0;  // of the attention problems, the same shapes twice
  for (const LoadedProblem& problem : *problems)
    for (const Workload& workload : problem.workloads) {
      const auto reference = make_reference(problem.definition, workload, plain_product(), 1);
      ASSERT_TRUE(reference.ok()) << problem.definition.name << ": " << reference.status().to_string();
      if (problem.definition.name == "attention_f32_d64") full_flops += (*reference)->flops();
      if (problem.definition.name == "attention_f32_d64_causal") causal_flops += (*reference)->flops();
    }
  EXPECT_GT(causal_flops, 0);
  EXPECT_LT(causal_flops, 0.6 * full_flops);
}

TEST(MakeReference, NamesWhatItCannotCompute) {
  Definition definition;
  definition.name = "x";
  definition.op_type = "gemm";
  definition.axes = {{"M", 2, ""}, {"K", 3, ""}};
  definition.inputs = {{"A", false, {"M", "K"}}, {"B", false, {"K", "M"}}};  // not transposed: B is [K, N]
  definition.outputs = {{"C", false, {"M", "M"}}};
  const auto reference = make_reference(definition, {}, plain_product(), 1);
  ASSERT_FALSE(reference.ok());
  EXPECT_EQ(reference.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(reference.status().message().find("inputs (A, B)"), std::string::npos);
}

TEST(RowLoops, ExponentiateIsAccurateAndUnderflowsToZero) {
  Floats x;
  for (int i = 0; i < 1000; ++i) x.push_back(-0.1f * static_cast<float>(i));
  Floats result = x;
  const float sum = exponentiate(result.data(), 1, 0, 1000);
  double expected_sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = x[i] < -87 ? 0 : std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(result[i], expected, 2e-6 * expected);
    expected_sum += expected;
  }
  EXPECT_NEAR(sum, expected_sum, 1e-4);
}

TEST(PinnedCrew, RunsEveryPartOnceEachTimeAndReportsTheTime) {
  PinnedCrew crew({0, 0, 0});
  std::atomic<int> calls[3] = {};
  for (int run = 1; run <= 50; ++run) {
    const int64_t elapsed = crew.run([&](int part) { ++calls[part]; });
    EXPECT_GT(elapsed, 0);
    for (const auto& count : calls) ASSERT_EQ(count.load(), run);
  }
}

}  // namespace
}  // namespace fixit

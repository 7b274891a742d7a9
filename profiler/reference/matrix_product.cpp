#include "profiler/reference/matrix_product.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "profiler/reference/row_loops.h"

#ifdef FIXIT_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace fixit {
namespace {

class PlainProduct final : public MatrixProduct {
 public:
  void times_transposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                        int64_t ldb, float* c, int64_t ldc) const override {
    // Rows of B in blocks that stay in the second-level cache while all rows of A pass over them.
    constexpr int64_t kBlock = 64;
    for (int64_t first = 0; first < n; first += kBlock)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = first; j < std::min(n, first + kBlock); ++j)
          c[i * ldc + j] = dot(a + i * lda, b + j * ldb, k);
  }
  void times(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
             float* c, int64_t ldc) const override {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = 0;
      for (int64_t p = 0; p < k; ++p) add_scaled(c + i * ldc, b + p * ldb, a[i * lda + p], n);
    }
  }
  std::string name() const override { return "plain C++"; }
};

#ifdef FIXIT_HAVE_OPENBLAS
class OpenblasProduct final : public MatrixProduct {
 public:
  OpenblasProduct() {
    openblas_set_num_threads(1);
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
    const size_t version_end = config.find(' ', config.find(' ') + 1);
    name_ = config.substr(0, version_end);
  }
  void times_transposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                        int64_t ldb, float* c, int64_t ldc) const override {
    product(CblasTrans, m, n, k, a, lda, b, ldb, c, ldc);
  }
  void times(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
             float* c, int64_t ldc) const override {
    product(CblasNoTrans, m, n, k, a, lda, b, ldb, c, ldc);
  }
  std::string name() const override { return name_; }

 private:
  static void product(CBLAS_TRANSPOSE transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
                      int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose_b, static_cast<blasint>(m), static_cast<blasint>(n),
                static_cast<blasint>(k), 1.0f, a, static_cast<blasint>(lda), b, static_cast<blasint>(ldb),
                0.0f, c, static_cast<blasint>(ldc));
  }
  std::string name_;
};
#endif

struct TestShape {
  int64_t m, n, k;
};

// Values that any order of summation gets nearly right, from a small linear congruence.
std::vector<float> test_values(size_t count, uint32_t state) {
  std::vector<float> values(count);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

Status check_shape(const MatrixProduct& product, const TestShape& shape, bool transposed) {
  const auto [m, n, k] = shape;
  const std::vector<float> a = test_values(static_cast<size_t>(m * k), 1);
  const std::vector<float> b = test_values(static_cast<size_t>(n * k), 2);
  std::vector<float> c(static_cast<size_t>(m * n), std::nanf(""));
  if (transposed)
    product.times_transposed(m, n, k, a.data(), k, b.data(), k, c.data(), n);
  else
    product.times(m, n, k, a.data(), k, b.data(), n, c.data(), n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double expected = 0;
      for (int64_t p = 0; p < k; ++p)
        expected += static_cast<double>(a[static_cast<size_t>(i * k + p)]) *
                    static_cast<double>(b[static_cast<size_t>(transposed ? j * k + p : p * n + j)]);
      const double got = c[static_cast<size_t>(i * n + j)];
      if (!(std::fabs(got - expected) <= 1e-4 * (1 + std::fabs(expected))))
        return Status(ErrorCode::kInternal,
                      fmt::format("{} computes {} instead of {} at [{}, {}] of a {} x {} x {} product{}",
                                  product.name(), got, expected, i, j, m, n, k,
                                  transposed ? " with B transposed" : ""));
    }
  return {};
}

}  // namespace

const MatrixProduct& plain_product() {
  static const PlainProduct product;
  return product;
}

const MatrixProduct* openblas_product() {
#ifdef FIXIT_HAVE_OPENBLAS
  static const OpenblasProduct product;
  return &product;
#else
  return nullptr;
#endif
}

Status check_product(const MatrixProduct& product) {
  for (const TestShape& shape : {TestShape{1, 1, 1}, TestShape{33, 29, 65}, TestShape{130, 71, 300}})
    for (const bool transposed : {true, false})
      FIXIT_RETURN_IF_ERROR(check_shape(product, shape, transposed));
  return {};
}

const MatrixProduct& best_product(std::string& refusal) {
  refusal.clear();
  const MatrixProduct* openblas = openblas_product();
  if (openblas == nullptr) return plain_product();
  const Status checked = check_product(*openblas);
  if (checked.ok()) return *openblas;
  refusal = checked.message();
  return plain_product();
}

}  // namespace fixit

#include "profiler/reference/operators.h"

#include <cmath>

#include "profiler/reference/row_loops.h"

namespace fixit {
namespace {

class Gemm final : public ReferenceOperator {
 public:
  Gemm(const GemmShape& shape, const MatrixProduct& product) : shape_(shape), product_(product) {}
  void run(std::span<const float* const> inputs, std::span<float* const> outputs, int part,
           int parts) override {
    const auto [m, n, k] = shape_;
    if (m >= n) {  // along the longer side, so that shares stay square
      const auto [first, last] = share_of(m, part, parts);
      if (first < last)
        product_.times_transposed(last - first, n, k, inputs[0] + first * k, k, inputs[1], k,
                                  outputs[0] + first * n, n);
      return;
    }
    const auto [first, last] = share_of(n, part, parts);
    if (first < last)
      product_.times_transposed(m, last - first, k, inputs[0], k, inputs[1] + first * k, k,
                                outputs[0] + first, n);
  }
  double flops() const override {
    return 2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) *
           static_cast<double>(shape_.k);
  }
  std::string baseline() const override { return product_.name() + " sgemm"; }

 private:
  GemmShape shape_;
  const MatrixProduct& product_;
};

class Rmsnorm final : public ReferenceOperator {
 public:
  explicit Rmsnorm(const RmsnormShape& shape) : shape_(shape) {}
  void run(std::span<const float* const> inputs, std::span<float* const> outputs, int part,
           int parts) override {
    const auto [first, last] = share_of(shape_.rows, part, parts);
    for (int64_t row = first; row < last; ++row) {
      const float* x = inputs[0] + row * shape_.width;
      const float mean_square = dot(x, x, shape_.width) / static_cast<float>(shape_.width);
      scale_by_weight(outputs[0] + row * shape_.width, x, 1.0f / std::sqrt(mean_square + shape_.epsilon),
                      inputs[1], shape_.width);
    }
  }
  // The sum of squares alone: the scaling has products without sums.
  double flops() const override {
    return 2.0 * static_cast<double>(shape_.rows) * static_cast<double>(shape_.width);
  }
  std::string baseline() const override { return "plain C++ rmsnorm"; }

 private:
  RmsnormShape shape_;
};

}  // namespace

std::unique_ptr<ReferenceOperator> make_gemm(const GemmShape& shape, const MatrixProduct& product) {
  return std::make_unique<Gemm>(shape, product);
}

std::unique_ptr<ReferenceOperator> make_rmsnorm(const RmsnormShape& shape) {
  return std::make_unique<Rmsnorm>(shape);
}

}  // namespace fixit

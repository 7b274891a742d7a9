// Reference operators of the CPU target: what a candidate's outputs and latency are compared with.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/trace/definition.h"
#include "profiler/reference/matrix_product.h"

namespace fixit {

// One operator at one workload's shapes, float32, contiguous row-major tensors.
class ReferenceOperator {
 public:
  virtual ~ReferenceOperator() = default;
  // Computes share `part` of `parts` of all outputs; different parts may run at the same time. Pointers are
  // in the definition's order.
  virtual void run(std::span<const float* const> inputs, std::span<float* const> outputs, int part,
                   int parts) = 0;
  // Floating point operations of the operator's multiply-adds, 2 each: what matrix or FMA instructions can
  // carry.
  virtual double flops() const = 0;
  // What the reference latency is of: "OpenBLAS 0.3.21 sgemm".
  virtual std::string baseline() const = 0;
};

// Chosen by op_type and tensor names, any axis const or var:
//   gemm       A[M, K], B[N, K] -> C[M, N]: C = A B^T
//   attention  Q[B, H, S, D], K, V[B, G, T, D] -> O[B, H, S, D] and, if asked, LSE[B, H, S]: softmax(Q K^T /
//   sqrt(D)) V
//              and the natural logarithm of the sum of exponentials; query head h reads key head h / (H / G);
//              causal (key <= query + T - S) by the tag "causal:true" or a name that ends in "_causal"
//   rmsnorm    X[..., H], W[H] -> Y[..., H]: X / sqrt(mean(X^2) + eps) W, eps 1e-6 or from a tag "eps:1e-5"
// kUnsupported names op_type and tensors where none fits. `parts` is the largest number of parts that run()
// gets.
Result<std::unique_ptr<ReferenceOperator>> make_reference(const Definition& definition,
                                                          const Workload& workload,
                                                          const MatrixProduct& product, int parts);

}  // namespace fixit

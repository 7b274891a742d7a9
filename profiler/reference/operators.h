// The operators behind make_reference().
#pragma once

#include <cstdint>
#include <memory>

#include "profiler/reference/reference.h"

namespace fixit {

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
};
std::unique_ptr<ReferenceOperator> make_gemm(const GemmShape& shape, const MatrixProduct& product);

struct AttentionShape {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, depth = 0;
  bool causal = false;
  bool lse = false;  // a second output
};
std::unique_ptr<ReferenceOperator> make_attention(const AttentionShape& shape, const MatrixProduct& product,
                                                  int parts);

struct RmsnormShape {
  int64_t rows = 0, width = 0;
  float epsilon = 1e-6f;
};
std::unique_ptr<ReferenceOperator> make_rmsnorm(const RmsnormShape& shape);

// [first, last) of `total` units for share `part` of `parts`.
struct Share {
  int64_t first = 0, last = 0;
};
inline Share share_of(int64_t total, int part, int parts) {
  return {total * part / parts, total * (part + 1) / parts};
}

}  // namespace fixit

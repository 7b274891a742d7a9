// Single-threaded float32 matrix products: OpenBLAS where it computes right results here, plain code
// otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace fixit {

// All matrices are row-major with a leading dimension (elements from row to row). Thread-safe.
class MatrixProduct {
 public:
  virtual ~MatrixProduct() = default;
  // C[m, n] = A[m, k] x B[n, k]^T
  virtual void times_transposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                                int64_t ldb, float* c, int64_t ldc) const = 0;
  // C[m, n] = A[m, k] x B[k, n]
  virtual void times(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                     int64_t ldb, float* c, int64_t ldc) const = 0;
  // "OpenBLAS 0.3.21", "plain C++"
  virtual std::string name() const = 0;
};

const MatrixProduct& plain_product();
// Null where the build has no OpenBLAS. The first call sets it to one thread a call: the work is spread over
// pinned threads by the caller.
const MatrixProduct* openblas_product();

// Compares both products on small odd shapes with double precision. kInternal names the first wrong element.
Status check_product(const MatrixProduct& product);

// OpenBLAS if it is there and passes check_product(), else the plain code; `refusal` says why not, empty if
// it is used or not built in.
const MatrixProduct& best_product(std::string& refusal);

}  // namespace fixit

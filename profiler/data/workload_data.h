// The inputs of one workload: fresh random data for every call, or stored tensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/record/frozen_sweep.h"
#include "core/store/store.h"
#include "core/trace/definition.h"

namespace fixit {

struct TensorShape {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  size_t bytes = 0;
};

// Shape and size of a tensor under a workload. kInvalid beyond 2^40 bytes, kUnsupported for packed 4-bit
// types.
Result<TensorShape> tensor_shape(const Definition& definition, const TensorSpec& tensor,
                                 const Workload& workload);

class WorkloadData {
 public:
  // Reads stored tensors through `blobs`. kInvalid where a stored tensor's type or shape is not the
  // definition's, where a scalar input has no value, or where its type cannot be made at random; the message
  // names the input.
  static Result<WorkloadData> load(const Definition& definition, const Workload& workload,
                                   const FrozenWorkload& frozen, BlobStore& blobs);

  // One per input that is not a scalar, in the definition's order.
  const std::vector<TensorShape>& tensors() const { return tensors_; }
  // Writes tensor `index` of tensors() for a call. `out` has its size.
  void fill(size_t index, uint64_t seed, uint32_t call, std::span<std::byte> out) const;
  // All input tensors are stored: every call sees the same data.
  bool fixed() const { return fixed_; }
  // Stored expected outputs by name; empty where a reference computes them.
  const std::map<std::string, std::string>& expected() const { return expected_; }

 private:
  std::vector<TensorShape> tensors_;
  std::vector<std::string> stored_;  // parallel to tensors_: content, empty where random
  std::map<std::string, std::string> expected_;
  bool fixed_ = false;
};

}  // namespace fixit

// FlashInfer-Trace types (format facts: the FlashInfer-Trace schema, version of 2026): Definition, Workload,
// Solution, Trace. Loading validates everything; errors name file and field. Order of inputs and outputs is
// kept: it is the kernels' argument order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/codec.h"
#include "core/base/status.h"

namespace fixit {

enum class Dtype {
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat4E2m1,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kBool
};

template <>
struct EnumNames<Dtype> {
  static constexpr std::pair<Dtype, std::string_view> values[] = {
      {Dtype::kFloat32, "float32"},
      {Dtype::kFloat16, "float16"},
      {Dtype::kBfloat16, "bfloat16"},
      {Dtype::kFloat8E4m3fn, "float8_e4m3fn"},
      {Dtype::kFloat8E5m2, "float8_e5m2"},
      {Dtype::kFloat4E2m1, "float4_e2m1"},
      {Dtype::kInt64, "int64"},
      {Dtype::kInt32, "int32"},
      {Dtype::kInt16, "int16"},
      {Dtype::kInt8, "int8"},
      {Dtype::kBool, "bool"},
  };
};
int dtype_bytes(Dtype dtype);  // 0 for float4_e2m1, which is packed in pairs

struct Axis {
  std::string name;
  std::optional<int64_t> value;  // const axes; empty: var
  std::string description;
};

struct TensorSpec {
  std::string name;
  bool scalar = false;             // "shape": null, passed by value
  std::vector<std::string> shape;  // axis names; empty and not scalar: 0-D tensor
  Dtype dtype = Dtype::kFloat32;
  std::string description;
};

struct Definition {
  std::string name;
  std::string op_type;
  std::vector<Axis> axes;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::string reference;  // Python source with a top-level run()
  std::string description;
  std::vector<std::string> tags;
  std::vector<std::string> constraints;

  const Axis* axis(std::string_view axis_name) const;
  std::vector<std::string> var_axes() const;  // in order of declaration: trailing arguments of binding c
};

struct RandomInput {};
struct ScalarInput {
  std::variant<int64_t, double, bool> value;
};
struct StoredTensor {
  std::string path;  // safetensors file, relative to the trace set's root
  std::string tensor_key;
};
using WorkloadInput = std::variant<RandomInput, ScalarInput, StoredTensor>;

struct Workload {
  std::string uuid;
  std::vector<std::pair<std::string, int64_t>> axes;
  std::map<std::string, WorkloadInput> inputs;  // an input that is missing is random
  std::map<std::string, StoredTensor> outputs;  // stored expected outputs; empty: a reference computes them
};

// Parse one document. `where` begins error messages ("definitions/gemm/x.json").
Result<Definition> parse_definition(std::string_view json, std::string_view where);
// A line of workloads/*.jsonl: {definition, workload, solution: null, evaluation: null}, or a bare workload.
Result<Workload> parse_workload(std::string_view json, std::string_view where);
std::string write_definition(const Definition& definition);  // parse(write(x)) == x, keys in order
std::string write_workload(const Workload& workload);

// Checks the workload against the definition (axes present and positive, inputs known, scalar kinds).
Status check_workload(const Definition& definition, const Workload& workload, std::string_view where);

// Sizes of a tensor under a workload. REQUIRES: check_workload() passed.
Result<std::vector<int64_t>> resolve_shape(const Definition& definition, const TensorSpec& tensor,
                                           const Workload& workload);
// Values of the var axes in declaration order.
std::vector<int64_t> var_axis_values(const Definition& definition, const Workload& workload);

}  // namespace fixit

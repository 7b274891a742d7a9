#include "profiler/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "profiler/reference/operators.h"

namespace fixit {
namespace {

std::vector<std::string> names_of(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::optional<std::string> tag_value(const Definition& definition, std::string_view key) {
  for (const std::string& tag : definition.tags)
    if (tag.size() > key.size() && tag.starts_with(key) && tag[key.size()] == ':')
      return tag.substr(key.size() + 1);
  return std::nullopt;
}

bool all_float32(const Definition& definition) {
  const auto is_float32 = [](const TensorSpec& tensor) {
    return !tensor.scalar && tensor.dtype == Dtype::kFloat32;
  };
  return std::ranges::all_of(definition.inputs, is_float32) &&
         std::ranges::all_of(definition.outputs, is_float32);
}

// What the operators look at: names, and sizes in the definition's order.
struct Problem {
  const Definition& definition;
  std::vector<std::string> inputs, outputs;
  std::vector<std::vector<int64_t>> in, out;
};

Result<Problem> describe(const Definition& definition, const Workload& workload) {
  Problem problem{definition, names_of(definition.inputs), names_of(definition.outputs), {}, {}};
  for (const TensorSpec& tensor : definition.inputs) {
    FIXIT_ASSIGN_OR_RETURN(auto shape, resolve_shape(definition, tensor, workload));
    problem.in.push_back(std::move(shape));
  }
  for (const TensorSpec& tensor : definition.outputs) {
    FIXIT_ASSIGN_OR_RETURN(auto shape, resolve_shape(definition, tensor, workload));
    problem.out.push_back(std::move(shape));
  }
  return problem;
}

using Names = std::vector<std::string>;
using Sizes = std::vector<int64_t>;

std::optional<GemmShape> as_gemm(const Problem& problem) {
  if (problem.definition.op_type != "gemm" || problem.inputs != Names{"A", "B"} ||
      problem.outputs != Names{"C"})
    return std::nullopt;
  const Sizes& a = problem.in[0];
  const Sizes& b = problem.in[1];
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  // By axis names too: where N == K, sizes alone cannot tell B from its transpose.
  const auto& axes_a = problem.definition.inputs[0].shape;
  const auto& axes_b = problem.definition.inputs[1].shape;
  if (axes_a[1] != axes_b[1] || problem.out[0] != Sizes{a[0], b[0]}) return std::nullopt;
  return GemmShape{a[0], b[0], a[1]};
}

bool is_causal(const Definition& definition) {
  const auto tag = tag_value(definition, "causal");
  return tag ? *tag == "true" : definition.name.ends_with("_causal");
}

std::optional<AttentionShape> as_attention(const Problem& problem) {
  const bool lse = problem.outputs == Names{"O", "LSE"};
  if (problem.definition.op_type != "attention" || problem.inputs != Names{"Q", "K", "V"} ||
      !(lse || problem.outputs == Names{"O"}))
    return std::nullopt;
  const Sizes& q = problem.in[0];
  const Sizes& k = problem.in[1];
  if (q.size() != 4 || k.size() != 4 || problem.in[2] != k || problem.out[0] != q) return std::nullopt;
  if (k[0] != q[0] || k[3] != q[3] || k[1] == 0 || q[1] % k[1] != 0) return std::nullopt;
  if (lse && problem.out[1] != Sizes{q[0], q[1], q[2]}) return std::nullopt;
  return AttentionShape{q[0], q[1], k[1], q[2], k[2], q[3], is_causal(problem.definition), lse};
}

Result<float> rmsnorm_epsilon(const Definition& definition) {
  const auto tag = tag_value(definition, "eps");
  if (!tag) return 1e-6f;
  float value = 0;
  const auto [end, error] = std::from_chars(tag->data(), tag->data() + tag->size(), value);
  if (error != std::errc() || end != tag->data() + tag->size() || !(value >= 0))
    return Status(ErrorCode::kInvalid,
                  fmt::format("{}: tag eps:{} is not a number >= 0", definition.name, *tag));
  return value;
}

bool is_rmsnorm(const Problem& problem) {
  return problem.definition.op_type == "rmsnorm" && problem.inputs == Names{"X", "W"} &&
         problem.outputs == Names{"Y"} && !problem.in[0].empty() &&
         problem.in[1] == Sizes{problem.in[0].back()} && problem.out[0] == problem.in[0] &&
         problem.in[0].back() > 0;
}

}  // namespace

Result<std::unique_ptr<ReferenceOperator>> make_reference(const Definition& definition,
                                                          const Workload& workload,
                                                          const MatrixProduct& product, int parts) {
  FIXIT_ASSIGN_OR_RETURN(const Problem problem, describe(definition, workload));
  if (all_float32(definition)) {
    if (const auto gemm = as_gemm(problem)) return make_gemm(*gemm, product);
    if (const auto attention = as_attention(problem)) return make_attention(*attention, product, parts);
    if (is_rmsnorm(problem)) {
      FIXIT_ASSIGN_OR_RETURN(const float epsilon, rmsnorm_epsilon(definition));
      int64_t rows = 1;
      for (size_t axis = 0; axis + 1 < problem.in[0].size(); ++axis) rows *= problem.in[0][axis];
      return make_rmsnorm({rows, problem.in[0].back(), epsilon});
    }
  }
  return Status(
      ErrorCode::kUnsupported,
      fmt::format("no reference operator for op_type '{}' with inputs ({}) and outputs ({}); store the "
                  "inputs and the expected outputs in the workload, or use float32 tensors of gemm, "
                  "attention or rmsnorm as the documentation names them",
                  definition.op_type, fmt::join(problem.inputs, ", "), fmt::join(problem.outputs, ", ")));
}

}  // namespace fixit

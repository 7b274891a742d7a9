#include "profiler/data/workload_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/trace/safetensors.h"
#include "profiler/data/fill.h"

namespace fixit {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

// Content of a stored tensor, checked against what the definition says.
Result<std::string> load_stored(const StoredTensor& stored, const TensorShape& shape,
                                const FrozenWorkload& frozen, BlobStore& blobs) {
  const auto blob = frozen.tensors.find(stored.path);
  if (blob == frozen.tensors.end())
    return Status(ErrorCode::kInvalid,
                  fmt::format("{}: the workload names {}, whose content was not frozen with it", shape.name,
                              stored.path));
  auto file = blobs.get(blob->second);
  if (!file.ok()) return file.status().with_context(shape.name + ": " + stored.path);
  auto view = find_tensor(*file, stored.tensor_key);
  if (!view.ok()) return view.status().with_context(shape.name + ": " + stored.path);
  if (view->dtype != shape.dtype || view->shape != shape.sizes || view->data.size() != shape.bytes)
    return Status(ErrorCode::kInvalid,
                  fmt::format("{}: {} holds {} [{}], the definition says {} [{}]", shape.name, stored.path,
                              name_of(view->dtype), fmt::join(view->shape, ", "), name_of(shape.dtype),
                              fmt::join(shape.sizes, ", ")));
  return std::string(view->data);
}

}  // namespace

Result<TensorShape> tensor_shape(const Definition& definition, const TensorSpec& tensor,
                                 const Workload& workload) {
  TensorShape shape{tensor.name, tensor.dtype, {}, 1, 0};
  const int width = dtype_bytes(tensor.dtype);
  if (width == 0)
    return Status(ErrorCode::kUnsupported, fmt::format("{}: type {} is not supported on the CPU target",
                                                       tensor.name, name_of(tensor.dtype)));
  FIXIT_ASSIGN_OR_RETURN(shape.sizes, resolve_shape(definition, tensor, workload));
  for (const int64_t size : shape.sizes) {
    if (size < 0 || (size > 0 && shape.elements > kMaxTensorBytes / width / size))
      return Status(ErrorCode::kInvalid, fmt::format("{}: shape [{}] is larger than 1 TiB", tensor.name,
                                                     fmt::join(shape.sizes, ", ")));
    shape.elements *= size;
  }
  shape.bytes = static_cast<size_t>(shape.elements) * static_cast<size_t>(width);
  return shape;
}

Result<WorkloadData> WorkloadData::load(const Definition& definition, const Workload& workload,
                                        const FrozenWorkload& frozen, BlobStore& blobs) {
  WorkloadData data;
  data.fixed_ = true;
  for (const TensorSpec& input : definition.inputs) {
    const auto given = workload.inputs.find(input.name);
    if (input.scalar) {
      if (given == workload.inputs.end() || !std::holds_alternative<ScalarInput>(given->second))
        return Status(ErrorCode::kInvalid,
                      fmt::format("workload {}: scalar input {} has no value", workload.uuid, input.name));
      continue;
    }
    FIXIT_ASSIGN_OR_RETURN(TensorShape shape, tensor_shape(definition, input, workload));
    std::string content;
    const bool stored = given != workload.inputs.end() && std::holds_alternative<StoredTensor>(given->second);
    if (stored) {
      FIXIT_ASSIGN_OR_RETURN(content,
                             load_stored(std::get<StoredTensor>(given->second), shape, frozen, blobs));
    } else {
      FIXIT_RETURN_IF_ERROR(fill_random(shape.dtype, {}, {}).with_context("input " + input.name));
      data.fixed_ = false;
    }
    data.tensors_.push_back(std::move(shape));
    data.stored_.push_back(std::move(content));
  }
  for (const TensorSpec& output : definition.outputs) {
    const auto stored = workload.outputs.find(output.name);
    if (stored == workload.outputs.end()) continue;
    FIXIT_ASSIGN_OR_RETURN(const TensorShape shape, tensor_shape(definition, output, workload));
    FIXIT_ASSIGN_OR_RETURN(data.expected_[output.name], load_stored(stored->second, shape, frozen, blobs));
  }
  return data;
}

void WorkloadData::fill(size_t index, uint64_t seed, uint32_t call, std::span<std::byte> out) const {
  const std::string& stored = stored_[index];
  if (!stored.empty()) {
    std::memcpy(out.data(), stored.data(), std::min(out.size(), stored.size()));
    return;
  }
  const RandomStream stream{seed, static_cast<uint32_t>(index), call};
  // load() has checked that the type can be made.
  static_cast<void>(fill_random(tensors_[index].dtype, stream, out).ok());
}

}  // namespace fixit

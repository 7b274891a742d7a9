#include "core/trace/safetensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/trace/json_fields.h"

namespace fixit {
namespace {

constexpr uint64_t kMaxHeaderBytes = 16u << 20;
constexpr size_t kMaxRank = 16;

struct StoredDtype {
  std::string_view name;
  Dtype dtype;
  int bits;
};
constexpr StoredDtype kDtypes[] = {
    {"F32", Dtype::kFloat32, 32},       {"F16", Dtype::kFloat16, 16},
    {"BF16", Dtype::kBfloat16, 16},     {"F8_E4M3", Dtype::kFloat8E4m3fn, 8},
    {"F8_E5M2", Dtype::kFloat8E5m2, 8}, {"F4", Dtype::kFloat4E2m1, 4},
    {"I64", Dtype::kInt64, 64},         {"I32", Dtype::kInt32, 32},
    {"I16", Dtype::kInt16, 16},         {"I8", Dtype::kInt8, 8},
    {"BOOL", Dtype::kBool, 8},
};

Status corrupt(const std::string& what) {
  return Status(ErrorCode::kCorrupt, "safetensors: " + what);
}

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

Result<Extent> extent_of(const JsonFields& entry, uint64_t data_bytes) {
  FIXIT_ASSIGN_OR_RETURN(const Json* offsets, entry.array("data_offsets"));
  if (offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
    return entry.error("data_offsets", "must be two whole numbers");
  const Extent extent{(*offsets)[0].get<uint64_t>(), (*offsets)[1].get<uint64_t>()};
  if (extent.begin > extent.end || extent.end > data_bytes)
    return entry.error("data_offsets", "lie outside the " + std::to_string(data_bytes) + " bytes of data");
  return extent;
}

// The format wants the tensors to cover the data exactly: bytes that no tensor owns, or that two own, mean a
// damaged or crafted file.
Status check_cover(std::vector<Extent> extents, uint64_t data_bytes) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const auto& extent : extents) {
    if (extent.begin != covered)
      return corrupt("tensors overlap or leave a gap at byte " + std::to_string(covered));
    covered = extent.end;
  }
  if (covered != data_bytes)
    return corrupt("the data goes on after the last tensor, at byte " + std::to_string(covered));
  return {};
}

Result<SafetensorsView> view_of(const JsonFields& entry, const Extent& extent, std::string_view data) {
  FIXIT_ASSIGN_OR_RETURN(const std::string dtype_name, entry.text("dtype"));
  const auto* known = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const StoredDtype& candidate) {
    return candidate.name == dtype_name;
  });
  if (known == std::end(kDtypes))
    return Status(ErrorCode::kUnsupported,
                  entry.error("dtype", "`" + dtype_name + "` has no FlashInfer-Trace dtype").message());
  SafetensorsView view;
  view.dtype = known->dtype;
  FIXIT_ASSIGN_OR_RETURN(const Json* shape, entry.array("shape"));
  if (shape->size() > kMaxRank) return entry.error("shape", "has more than 16 dimensions");
  uint64_t bits = static_cast<uint64_t>(known->bits);
  for (const auto& item : *shape) {
    const auto axis = item.is_number_unsigned() ? lenient_integer(item) : std::nullopt;
    if (!axis) return entry.error("shape", "must be whole numbers");
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(*axis), &bits))
      return entry.error("shape", "is too large");
    view.shape.push_back(*axis);
  }
  if (bits % 8 != 0 || bits / 8 != extent.end - extent.begin)
    return entry.error("data_offsets", "span " + std::to_string(extent.end - extent.begin) +
                                           " bytes, but shape and dtype need " + std::to_string(bits / 8));
  view.data = data.substr(extent.begin, extent.end - extent.begin);
  return view;
}

Result<Json> parse_header(std::string_view bytes, std::string_view& data) {
  if (bytes.size() < 8) return corrupt("shorter than its 8-byte header length");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  if (length > bytes.size() - 8)
    return corrupt("the header claims " + std::to_string(length) + " bytes, the file has " +
                   std::to_string(bytes.size() - 8) + " after its length");
  if (length > kMaxHeaderBytes) return corrupt("the header is larger than 16 MiB");
  data = bytes.substr(8 + length);
  FIXIT_ASSIGN_OR_RETURN(Json header, parse_json(bytes.substr(8, length), "safetensors: header"));
  if (!header.is_object()) return corrupt("the header is not an object");
  return header;
}

Result<SafetensorsView> find_in(const Json& header, std::string_view data, std::string_view key) {
  std::vector<Extent> extents;
  std::optional<std::pair<JsonFields, Extent>> wanted;
  std::string keys;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    FIXIT_ASSIGN_OR_RETURN(const JsonFields entry, JsonFields::of(json, "safetensors", name));
    FIXIT_ASSIGN_OR_RETURN(const Extent extent, extent_of(entry, data.size()));
    extents.push_back(extent);
    if (name == key) wanted.emplace(entry, extent);
    if (keys.size() < 500) keys += (keys.empty() ? "" : ", ") + name;
  }
  FIXIT_RETURN_IF_ERROR(check_cover(std::move(extents), data.size()));
  if (!wanted)
    return Status(ErrorCode::kNotFound,
                  "safetensors: no tensor `" + std::string(key) + "`; the file has: " + keys);
  return view_of(wanted->first, wanted->second, data);
}

}  // namespace

Result<SafetensorsView> find_tensor(std::string_view file_bytes, std::string_view key) {
  // Where Git LFS has not fetched a file, a small text stands in its place.
  if (file_bytes.starts_with("version https://git-lfs"))
    return corrupt("this is a Git LFS pointer, not the file; run `git lfs pull` in the trace set");
  std::string_view data;
  auto header = parse_header(file_bytes, data);
  auto view = header.ok() ? find_in(*header, data, key) : Result<SafetensorsView>(header.status());
  // What the readers of fields call invalid is, in a stored file, damage.
  if (!view.ok() && view.status().code() == ErrorCode::kInvalid)
    return Status(ErrorCode::kCorrupt, view.status().message());
  return view;
}

}  // namespace fixit

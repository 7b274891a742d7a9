// Reading safetensors files (format: 8-byte little-endian header length, JSON header, data).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/trace/definition.h"

namespace fixit {

struct SafetensorsView {
  Dtype dtype = Dtype::kFloat32;
  std::vector<int64_t> shape;
  std::string_view data;  // into the file's bytes
};

// Finds one tensor in a whole file's untrusted bytes. kNotFound names the keys that exist; kCorrupt for
// offsets or sizes that do not fit.
Result<SafetensorsView> find_tensor(std::string_view file_bytes, std::string_view key);

}  // namespace fixit

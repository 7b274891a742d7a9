// Payloads of a pack's records (docs/store-format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace fixit {

inline constexpr std::string_view kPackMagic = "FIXPACK1";
inline constexpr size_t kMaxNameBytes = 1024;

struct PackedBlob {
  std::string_view hash;  // 32 raw bytes
  bool compressed = false;
  uint64_t size = 0;  // of the blob
  std::string_view data;
};

struct PackedName {
  std::string_view hash;  // 32 raw bytes
  std::string_view name;
};

std::string pack_blob(std::string_view raw_hash, std::string_view bytes);
std::string pack_name(std::string_view raw_hash, std::string_view name);

// Views into `payload`; absent for neither.
std::variant<std::monostate, PackedBlob, PackedName> parse_packed(std::string_view payload);

// The blob's bytes, size and SHA-256 checked. kCorrupt.
Result<std::string> unpack_blob(const PackedBlob& blob);

}  // namespace fixit

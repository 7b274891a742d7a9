// Little-endian integers in byte strings, as the file formats have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fixit {

inline void put_u32(std::string& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

inline void put_u64(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

// REQUIRES: at least 4, 8 bytes.
inline uint32_t get_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  return value;
}

inline uint64_t get_u64(std::string_view bytes) {
  return get_u32(bytes) | static_cast<uint64_t>(get_u32(bytes.substr(4))) << 32;
}

}  // namespace fixit

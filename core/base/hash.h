// SHA-256 names for content, and random identifiers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fixit {

// 64 lower-case hexadecimal digits: the SHA-256 of some bytes. Empty means "none".
using BlobHash = std::string;

BlobHash sha256(std::string_view bytes);
// The hash of a list: each part is preceded by its length, so no two lists share a hash by concatenation.
BlobHash sha256_of(std::initializer_list<std::string_view> parts);
bool is_blob_hash(std::string_view text);

// `bytes` random bytes from the kernel as hexadecimal digits; 16 make an attempt token.
std::string random_hex(int bytes);

// `bytes` raw bytes of a hexadecimal text; empty if it is not one.
std::string from_hex(std::string_view hex);

// CRC-32C (Castagnoli) of bytes, for torn-write detection in append-only files.
uint32_t crc32c(std::string_view bytes);

}  // namespace fixit

#include "core/base/hash.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace fixit {
namespace {

std::string to_hex(const unsigned char* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(size * 2, '0');
  for (size_t i = 0; i < size; ++i) {
    text[2 * i] = kDigits[bytes[i] >> 4];
    text[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return text;
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  BlobHash finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    return to_hex(digest, size);
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);  // reflected polynomial
    table[i] = crc;
  }
  return table;
}

}  // namespace

BlobHash sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

BlobHash sha256_of(std::initializer_list<std::string_view> parts) {
  Sha256 hash;
  for (const std::string_view part : parts) {
    hash.add(std::to_string(part.size()) + ":");
    hash.add(part);
  }
  return hash.finish();
}

bool is_blob_hash(std::string_view text) {
  if (text.size() != 64) return false;
  for (const char c : text)
    if (hex_digit(c) < 0) return false;
  return true;
}

std::string random_hex(int bytes) {
  std::string raw(static_cast<size_t>(bytes), '\0');
  size_t filled = 0;
  while (filled < raw.size()) {
    const ssize_t got = getrandom(raw.data() + filled, raw.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return to_hex(reinterpret_cast<const unsigned char*>(raw.data()), raw.size());
}

std::string from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return {};
  std::string bytes(hex.size() / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return {};
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 255];
  return crc ^ 0xffffffffu;
}

}  // namespace fixit

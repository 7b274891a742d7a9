#include "core/store/pack_format.h"

#include "core/store/bytes.h"
#include "core/store/zstd_bytes.h"

namespace fixit {
namespace {

constexpr size_t kRawHashBytes = 32;
constexpr size_t kBlobHeadBytes = 2 + 8 + kRawHashBytes;
constexpr size_t kNameHeadBytes = 1 + kRawHashBytes;

}  // namespace

std::string pack_blob(std::string_view raw_hash, std::string_view bytes) {
  const auto compressed = zstd_if_smaller(bytes);
  const std::string_view data = compressed ? std::string_view(*compressed) : bytes;
  std::string out;
  out.reserve(kBlobHeadBytes + data.size());
  out += 'b';
  out += compressed ? '\1' : '\0';
  put_u64(out, bytes.size());
  out.append(raw_hash).append(data);
  return out;
}

std::string pack_name(std::string_view raw_hash, std::string_view name) {
  std::string out = "n";
  out.append(raw_hash).append(name);
  return out;
}

std::variant<std::monostate, PackedBlob, PackedName> parse_packed(std::string_view payload) {
  if (payload.size() >= kBlobHeadBytes && payload[0] == 'b' && (payload[1] == 0 || payload[1] == 1))
    return PackedBlob{payload.substr(10, kRawHashBytes), payload[1] == 1, get_u64(payload.substr(2)),
                      payload.substr(kBlobHeadBytes)};
  if (payload.size() > kNameHeadBytes && payload[0] == 'n')
    return PackedName{payload.substr(1, kRawHashBytes), payload.substr(kNameHeadBytes)};
  return std::monostate{};
}

Result<std::string> unpack_blob(const PackedBlob& blob) {
  std::string bytes;
  if (blob.compressed) {
    FIXIT_ASSIGN_OR_RETURN(bytes, zstd_expand(blob.data, blob.size));
  } else {
    bytes = std::string(blob.data);
  }
  if (bytes.size() != blob.size || from_hex(sha256(bytes)) != blob.hash)
    return Status(ErrorCode::kCorrupt, "the stored bytes are not those of their hash");
  return bytes;
}

}  // namespace fixit

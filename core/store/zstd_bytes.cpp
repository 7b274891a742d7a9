#include "core/store/zstd_bytes.h"

#include <fmt/format.h>
#include <zstd.h>

namespace fixit {
namespace {

constexpr int kLevel = 3;  // zstd's own default: sources and prompts shrink 3-5 fold at hundreds of MB/s
constexpr size_t kSmallest = 64;  // below it a frame's own bytes eat the gain

}  // namespace

std::optional<std::string> zstd_if_smaller(std::string_view bytes) {
  if (bytes.size() < kSmallest) return std::nullopt;
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) || size > bytes.size() - bytes.size() / 8) return std::nullopt;
  out.resize(size);
  return out;
}

Result<std::string> zstd_expand(std::string_view frame, uint64_t size) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size)
    return Status(ErrorCode::kCorrupt, fmt::format("zstd: the frame does not hold {} bytes", size));
  std::string out(size, '\0');
  const size_t got = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(got)) return Status(ErrorCode::kCorrupt, fmt::format("zstd: {}", ZSTD_getErrorName(got)));
  if (got != size) return Status(ErrorCode::kCorrupt, "zstd: a short frame");
  return out;
}

}  // namespace fixit

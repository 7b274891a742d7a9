// Files: whole reads, durable writes, and paths that stay inside a root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fixit {

// Reads a regular file of at most `limit_bytes`. kNotFound, kDenied or kInvalid, naming the path.
Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes = 1ull << 31);

// Writes to a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the folder: after a
// crash the old or the new content is there, never a mix. kFull when the disk is.
Status write_file_durably(const std::filesystem::path& path, std::string_view bytes);

// `relative` joined to `root`, refused (kInvalid) where it is absolute, climbs out with `..`, or leaves
// through a symbolic link.
Result<std::filesystem::path> join_inside(const std::filesystem::path& root, std::string_view relative);

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace fixit

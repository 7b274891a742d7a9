#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/hash.h"

namespace fixit {
namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorCode::kFull;
    default:
      return ErrorCode::kUnavailable;
  }
}

Status system_error(const std::string& what, int error) {
  return Status(code_of(error), what + ": " + std::strerror(error));
}

Status write_all(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("writing " + name, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, uint64_t limit_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_error("reading " + path.string(), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("reading " + path.string(), errno);
  if (!S_ISREG(info.st_mode)) return Status(ErrorCode::kInvalid, path.string() + " is not a regular file");
  if (static_cast<uint64_t>(info.st_size) > limit_bytes)
    return Status(ErrorCode::kInvalid, path.string() + " has " + std::to_string(info.st_size) +
                                           " bytes, more than the " + std::to_string(limit_bytes) +
                                           " accepted");
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("reading " + path.string(), errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

Status write_file_durably(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string temporary = path.string() + ".tmp-" + random_hex(6);
  const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return system_error("writing " + temporary, errno);
  Status status = write_all(fd.get(), bytes, temporary);
  if (status.ok() && ::fsync(fd.get()) != 0) status = system_error("writing " + temporary, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = system_error("writing " + path.string(), errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  const UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd || ::fsync(folder_fd.get()) != 0) return system_error("writing " + folder.string(), errno);
  return {};
}

Result<std::filesystem::path> join_inside(const std::filesystem::path& root, std::string_view relative) {
  const std::filesystem::path part(relative);
  if (part.empty() || part.is_absolute())
    return Status(ErrorCode::kInvalid, "`" + std::string(relative) + "` is not a relative path");
  for (const auto& step : part)
    if (step == "..") return Status(ErrorCode::kInvalid, "`" + std::string(relative) + "` leaves its folder");
  std::error_code error;
  const auto real_root = std::filesystem::weakly_canonical(root, error);
  const auto real = std::filesystem::weakly_canonical(root / part, error);
  const auto [end, unused] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  if (error || end != real_root.end())
    return Status(ErrorCode::kInvalid, "`" + std::string(relative) + "` leaves its folder through a link");
  return root / part;
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

int UniqueFd::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

}  // namespace fixit

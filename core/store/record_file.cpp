#include "core/store/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/hash.h"
#include "core/store/bytes.h"

namespace fixit {
namespace {

constexpr uint32_t kRecordMark = 0x5246D1F7;

Status system_error(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  const ErrorCode code = full                                  ? ErrorCode::kFull
                         : denied                              ? ErrorCode::kDenied
                         : error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound
                                                               : ErrorCode::kUnavailable;
  return Status(code, what + ": " + std::strerror(error) + (full ? "; free space and try again" : ""));
}

std::string record_header(std::string_view payload) {
  std::string header;
  put_u32(header, kRecordMark);
  put_u32(header, static_cast<uint32_t>(payload.size()));
  put_u32(header, crc32c(payload));
  put_u32(header, crc32c(header));
  return header;
}

// The payload's length if a whole header stands at the beginning of `bytes`.
std::optional<uint64_t> header_length(std::string_view bytes) {
  if (bytes.size() < kRecordHeaderBytes || get_u32(bytes) != kRecordMark) return std::nullopt;
  if (get_u32(bytes.substr(12)) != crc32c(bytes.substr(0, 12))) return std::nullopt;
  const uint64_t length = get_u32(bytes.substr(4));
  if (length > kMaxRecordBytes) return std::nullopt;
  return length;
}

bool whole_record(std::string_view bytes) {
  const auto length = header_length(bytes);
  if (!length || bytes.size() - kRecordHeaderBytes < *length) return false;
  return crc32c(bytes.substr(kRecordHeaderBytes, *length)) == get_u32(bytes.substr(8));
}

// Where the next whole record begins, at or after `from`.
std::optional<uint64_t> next_whole_record(std::string_view file, uint64_t from) {
  std::string mark;
  put_u32(mark, kRecordMark);
  for (size_t at = file.find(mark, from); at != std::string_view::npos; at = file.find(mark, at + 1))
    if (whole_record(file.substr(at))) return at;
  return std::nullopt;
}

}  // namespace

RecordFile::RecordFile(std::filesystem::path path, UniqueFd fd, uint64_t size)
    : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

Result<std::unique_ptr<RecordFile>> RecordFile::create(const std::filesystem::path& path,
                                                       std::string_view magic) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd && errno == EEXIST) return Status(ErrorCode::kConflict, path.string() + " exists already");
  if (!fd) return system_error("creating " + path.string(), errno);
  std::unique_ptr<RecordFile> file(new RecordFile(path, std::move(fd), 0));
  Status status = file->write_whole(magic);
  if (status.ok()) status = file->sync();
  if (status.ok()) status = sync_folder(path.parent_path());
  if (!status.ok()) {
    ::unlink(path.c_str());
    return status;
  }
  return file;
}

Result<std::unique_ptr<RecordFile>> RecordFile::reopen(const std::filesystem::path& path, uint64_t size) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return system_error("opening " + path.string(), errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
    return system_error("cutting the torn tail of " + path.string(), errno);
  std::unique_ptr<RecordFile> file(new RecordFile(path, std::move(fd), size));
  // What a crash left in the page cache must be on disk before anything new counts as durable behind it.
  FIXIT_RETURN_IF_ERROR(file->sync());
  return file;
}

Status RecordFile::write_whole(std::string_view bytes) {
  if (broken_) return Status(ErrorCode::kUnavailable, path_.string() + " failed before; open it again");
  uint64_t at = size_;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) broken_ = true;
      return system_error("appending to " + path_.string(), error);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    at += static_cast<uint64_t>(written);
  }
  size_ = at;
  return {};
}

Result<uint64_t> RecordFile::append(std::string_view payload) {
  if (payload.size() > kMaxRecordBytes)
    return Status(ErrorCode::kInvalid, fmt::format("a record of {} bytes for {}: at most {} are accepted",
                                                   payload.size(), path_.string(), kMaxRecordBytes));
  const uint64_t offset = size_ + kRecordHeaderBytes;
  std::string record = record_header(payload);
  record.append(payload);
  FIXIT_RETURN_IF_ERROR(write_whole(record));
  return offset;
}

Status RecordFile::sync() {
  if (broken_) return Status(ErrorCode::kUnavailable, path_.string() + " failed before; open it again");
  if (::fdatasync(fd_.get()) == 0) return {};
  const int error = errno;
  broken_ = true;
  return system_error("making " + path_.string() + " durable", error);
}

Result<RecordScan> scan_records(std::string_view file, std::string_view magic, bool check_payloads,
                                const RecordVisitor& visitor) {
  if (file.substr(0, magic.size()) != magic.substr(0, std::min(magic.size(), file.size())))
    return Status(ErrorCode::kCorrupt, fmt::format("does not begin with {}", magic));
  if (file.size() < magic.size()) return RecordScan{0, true};
  uint64_t at = magic.size();
  while (at < file.size()) {
    const std::string_view rest = file.substr(at);
    const auto length = header_length(rest);
    const bool fits = length && rest.size() - kRecordHeaderBytes >= *length;
    const bool last = fits && rest.size() - kRecordHeaderBytes == *length;
    if (fits && ((!check_payloads && !last) || whole_record(rest))) {
      if (!visitor.record(at + kRecordHeaderBytes, rest.substr(kRecordHeaderBytes, *length)))
        return RecordScan{at + kRecordHeaderBytes + *length, false};
      at += kRecordHeaderBytes + *length;
      continue;
    }
    const auto next = next_whole_record(file, fits ? at + kRecordHeaderBytes + *length : at + 1);
    if (!next) return RecordScan{at, true};
    if (!visitor.damage(at, *next)) return RecordScan{at, false};
    at = *next;
  }
  return RecordScan{at, false};
}

Result<std::string> read_record(int fd, uint64_t payload_offset) {
  const auto read_exactly = [fd](char* out, size_t size, uint64_t at) {
    while (size > 0) {
      const ssize_t got = ::pread(fd, out, size, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      out += got;
      size -= static_cast<size_t>(got);
      at += static_cast<uint64_t>(got);
    }
    return true;
  };
  std::string header(kRecordHeaderBytes, '\0');
  if (!read_exactly(header.data(), header.size(), payload_offset - kRecordHeaderBytes))
    return Status(ErrorCode::kCorrupt, fmt::format("no record at offset {}", payload_offset));
  const auto length = header_length(header);
  if (!length)
    return Status(ErrorCode::kCorrupt, fmt::format("damaged header before offset {}", payload_offset));
  std::string payload(*length, '\0');
  if (!read_exactly(payload.data(), payload.size(), payload_offset) ||
      crc32c(payload) != get_u32(std::string_view(header).substr(8)))
    return Status(ErrorCode::kCorrupt, fmt::format("damaged record at offset {}", payload_offset));
  return payload;
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("opening " + path.string(), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("reading " + path.string(), errno);
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return system_error("mapping " + path.string(), errno);
  return MappedFile(static_cast<const char*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(other.data_), size_(other.size_) {
  other.data_ = nullptr;
  other.size_ = 0;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
}

Result<UniqueFd> lock_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status(ErrorCode::kDenied, "creating " + folder.string() + ": " + error.message());
  UniqueFd fd(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return system_error("opening " + (folder / "lock").string(), errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("locking " + folder.string(), errno);
    return Status(ErrorCode::kConflict,
                  folder.string() + " is in use by another coordinator; stop that one first");
  }
  return fd;
}

Status sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder.empty() ? "." : folder;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return system_error("making " + path.string() + " durable", errno);
  return {};
}

}  // namespace fixit

// Append-only files of framed records (docs/record-files.md), under the packs of the store and the journal.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/base/status.h"

namespace fixit {

inline constexpr size_t kFileMagicBytes = 8;
inline constexpr size_t kRecordHeaderBytes = 16;
inline constexpr uint64_t kMaxRecordBytes = 1u << 30;

// Not thread-safe, but that sync() may run beside append().
class RecordFile {
 public:
  // A new file; kConflict if it exists. The folder is fsynced, so that the file survives a crash.
  static Result<std::unique_ptr<RecordFile>> create(const std::filesystem::path& path,
                                                    std::string_view magic);
  // An existing file, cut to `size` bytes: what scan_records() found whole.
  static Result<std::unique_ptr<RecordFile>> reopen(const std::filesystem::path& path, uint64_t size);

  // Returns the payload's offset. kFull when the disk is; whatever fails, the file ends with a whole record.
  Result<uint64_t> append(std::string_view payload);
  Status sync();
  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }

 private:
  RecordFile(std::filesystem::path path, UniqueFd fd, uint64_t size);
  Status write_whole(std::string_view bytes);

  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
  // After a failed fsync or a failed cut nobody knows what is on disk: everything fails until reopened.
  std::atomic<bool> broken_{false};
};

struct RecordScan {
  uint64_t whole_bytes = 0;  // up to the end of the last whole record
  bool torn = false;         // something follows it
};

struct RecordVisitor {
  // A whole record; false stops the scan.
  std::function<bool(uint64_t payload_offset, std::string_view payload)> record;
  // Damage from `offset` to `next`, where whole records follow; false stops the scan.
  std::function<bool(uint64_t offset, uint64_t next)> damage;
};

// Reads a mapped record file. With `check_payloads` false only headers are checked: the pages of payloads are
// then not touched beyond what the visitor reads. kCorrupt if the file does not begin with the magic; an
// empty or shorter file is a torn one.
Result<RecordScan> scan_records(std::string_view file, std::string_view magic, bool check_payloads,
                                const RecordVisitor& visitor);

// Reads the record whose payload begins at `payload_offset`, CRC checked. kCorrupt.
Result<std::string> read_record(int fd, uint64_t payload_offset);

// A file mapped for reading, as long as it was when opened.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// The exclusive lock of a folder's one writer: `folder`/lock, given back when the descriptor closes. Creates
// the folder. kConflict if somebody holds it.
Result<UniqueFd> lock_folder(const std::filesystem::path& folder);

Status sync_folder(const std::filesystem::path& folder);

}  // namespace fixit

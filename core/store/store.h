// Content-addressed blobs, and names bound to them. The coordinator owns a PackStore; every other program
// sees the same interface over ZeroMQ (core/wire/remote_store.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace fixit {

// Thread-safe.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Stores bytes and returns their hash; storing the same bytes again is free. On return the blob is visible
  // to get(); it is on disk for good after the next sync() or bind().
  virtual Result<BlobHash> put(std::string_view bytes) = 0;
  virtual Result<std::string> get(const BlobHash& hash) = 0;  // kNotFound, kCorrupt
  virtual bool contains(const BlobHash& hash) = 0;

  // Binds a name ("reply/KEY", "verdict/KEY", "compile/KEY") to a stored blob, and makes both durable (fsync)
  // before it returns. Binding a bound name again: same blob is ok, another is kConflict: what was paid for
  // first stays.
  virtual Status bind(const std::string& name, const BlobHash& hash) = 0;
  virtual Result<std::optional<BlobHash>> lookup(const std::string& name) = 0;

  virtual Status sync() = 0;
};

// Append-only pack files of one writer (docs/store-format.md): zstd-compressed records with length, CRC and
// hash; names are records too. The index is rebuilt in memory at open; a torn tail is cut at the last whole
// record and reported in the log. kConflict if another process has the folder open, kFull when the disk is
// (nothing torn is left behind).
Result<std::unique_ptr<BlobStore>> open_pack_store(const std::filesystem::path& folder);

// In memory, for tests and tools.
std::unique_ptr<BlobStore> make_memory_store();

}  // namespace fixit

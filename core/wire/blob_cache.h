// Blobs in memory, the least recently used dropped first.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/hash.h"

namespace fixit {

// Thread-safe.
class BlobCache {
 public:
  explicit BlobCache(size_t capacity_bytes) : capacity_(capacity_bytes) {}
  std::optional<std::string> get(const BlobHash& hash);
  bool contains(const BlobHash& hash);
  // A blob larger than the whole cache is not kept.
  void put(const BlobHash& hash, std::string_view bytes);

 private:
  struct Entry {
    BlobHash hash;
    std::string bytes;
  };
  const size_t capacity_;
  std::mutex mutex_;
  size_t held_ = 0;          // bytes
  std::list<Entry> by_use_;  // the latest first
  std::unordered_map<BlobHash, std::list<Entry>::iterator> index_;
};

}  // namespace fixit

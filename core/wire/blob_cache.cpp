#include "core/wire/blob_cache.h"

namespace fixit {

std::optional<std::string> BlobCache::get(const BlobHash& hash) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(hash);
  if (found == index_.end()) return std::nullopt;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return found->second->bytes;
}

bool BlobCache::contains(const BlobHash& hash) {
  const std::lock_guard lock(mutex_);
  return index_.contains(hash);
}

void BlobCache::put(const BlobHash& hash, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes.size() > capacity_ || index_.contains(hash)) return;
  by_use_.push_front({hash, std::string(bytes)});
  index_[hash] = by_use_.begin();
  held_ += bytes.size();
  while (held_ > capacity_) {
    held_ -= by_use_.back().bytes.size();
    index_.erase(by_use_.back().hash);
    by_use_.pop_back();
  }
}

}  // namespace fixit

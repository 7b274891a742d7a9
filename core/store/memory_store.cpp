#include <map>
#include <mutex>

#include "core/store/store.h"

namespace fixit {
namespace {

class MemoryStore : public BlobStore {
 public:
  Result<BlobHash> put(std::string_view bytes) override {
    BlobHash hash = sha256(bytes);
    const std::lock_guard lock(mutex_);
    blobs_.emplace(hash, bytes);
    return hash;
  }

  Result<std::string> get(const BlobHash& hash) override {
    const std::lock_guard lock(mutex_);
    const auto found = blobs_.find(hash);
    if (found == blobs_.end()) return Status(ErrorCode::kNotFound, "no blob " + hash + " in the store");
    return found->second;
  }

  bool contains(const BlobHash& hash) override {
    const std::lock_guard lock(mutex_);
    return blobs_.contains(hash);
  }

  Status bind(const std::string& name, const BlobHash& hash) override {
    const std::lock_guard lock(mutex_);
    if (!blobs_.contains(hash))
      return Status(ErrorCode::kNotFound, "no blob " + hash + " in the store to bind " + name + " to");
    const auto [bound, added] = names_.emplace(name, hash);
    if (!added && bound->second != hash)
      return Status(ErrorCode::kConflict, name + " is bound to " + bound->second + " already");
    return {};
  }

  Result<std::optional<BlobHash>> lookup(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto bound = names_.find(name);
    return bound == names_.end() ? std::optional<BlobHash>() : std::optional<BlobHash>(bound->second);
  }

  Status sync() override { return {}; }

 private:
  std::mutex mutex_;
  std::map<BlobHash, std::string> blobs_;
  std::map<std::string, BlobHash> names_;
};

}  // namespace

std::unique_ptr<BlobStore> make_memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace fixit

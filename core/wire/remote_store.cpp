#include "core/wire/remote_store.h"

#include <fmt/format.h>

#include "core/wire/blob_cache.h"

namespace fixit {
namespace {

// Above it, asking whether the store has the blob costs less than sending it in vain.
constexpr size_t kAskFirstBytes = 64u << 10;

class RemoteStore : public BlobStore {
 public:
  RemoteStore(BrokerClient& client, int64_t timeout_ms, size_t cache_bytes)
      : client_(client), timeout_ms_(timeout_ms), cache_(cache_bytes) {}

  Result<BlobHash> put(std::string_view bytes) override {
    if (bytes.size() > kMaxBlobBytes)
      return Status(ErrorCode::kInvalid,
                    fmt::format("a blob of {} bytes: at most {} are accepted", bytes.size(), kMaxBlobBytes));
    BlobHash hash = sha256(bytes);
    if (cache_.contains(hash)) return hash;  // it was read from the store or put there before
    if (bytes.size() <= kAskFirstBytes || !contains(hash)) {
      auto stored =
          client_.call(MessageType::kBlobPut, encode(BlobRef{hash}), {std::string(bytes)}, timeout_ms_);
      if (!stored.ok()) return stored.status().with_context("storing blob " + hash);
    }
    cache_.put(hash, bytes);
    return hash;
  }

  Result<std::string> get(const BlobHash& hash) override {
    if (auto bytes = cache_.get(hash)) return std::move(*bytes);
    auto reply = client_.call(MessageType::kBlobGet, encode(BlobRef{hash}), {}, timeout_ms_);
    if (!reply.ok()) return reply.status().with_context("reading blob " + hash);
    if (reply->type != MessageType::kBlob || reply->blobs.size() != 1)
      return Status(ErrorCode::kCorrupt, "reading blob " + hash + ": the broker's answer holds no blob");
    std::string bytes = std::move(reply->blobs[0]);
    if (sha256(bytes) != hash)
      return Status(ErrorCode::kCorrupt, "reading blob " + hash + ": the bytes received have another hash");
    cache_.put(hash, bytes);
    return bytes;
  }

  bool contains(const BlobHash& hash) override {
    if (cache_.contains(hash)) return true;
    const auto flag = ask<BlobFlag>(MessageType::kBlobHas, BlobRef{hash}, MessageType::kBlobFlag);
    return flag.ok() && flag->present;
  }

  Status bind(const std::string& name, const BlobHash& hash) override {
    return client_.call(MessageType::kNameBind, encode(NameBinding{name, hash}), {}, timeout_ms_)
        .status()
        .with_context("binding " + name);
  }

  Result<std::optional<BlobHash>> lookup(const std::string& name) override {
    auto binding = ask<NameBinding>(MessageType::kNameGet, NameRef{name}, MessageType::kName);
    if (!binding.ok()) return binding.status().with_context("looking up " + name);
    if (binding->hash.empty()) return std::optional<BlobHash>();
    return std::optional<BlobHash>(std::move(binding->hash));
  }

  Status sync() override { return client_.call(MessageType::kStoreSync, {}, {}, timeout_ms_).status(); }

 private:
  template <typename Reply, typename Body>
  Result<Reply> ask(MessageType type, const Body& body, MessageType expected) {
    auto reply = client_.call(type, encode(body), {}, timeout_ms_);
    if (!reply.ok()) return reply.status();
    if (reply->type != expected)
      return Status(ErrorCode::kCorrupt,
                    fmt::format("the broker answered `{}` with `{}`", name_of(type), name_of(reply->type)));
    return decode<Reply>(reply->body);
  }

  BrokerClient& client_;
  const int64_t timeout_ms_;
  BlobCache cache_;
};

}  // namespace

std::unique_ptr<BlobStore> make_remote_store(BrokerClient& client, int64_t timeout_ms, size_t cache_bytes) {
  return std::make_unique<RemoteStore>(client, timeout_ms, cache_bytes);
}

}  // namespace fixit

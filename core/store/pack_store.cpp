// The store on disk. Appends are serialised by one lock, the index has another, and an fsync holds neither:
// it is shared by everybody who waits for one (group commit).
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "core/store/pack_format.h"
#include "core/store/record_file.h"
#include "core/store/store.h"

namespace fixit {
namespace {

constexpr uint64_t kPackBytes = 256ull << 20;

using RawHash = std::array<char, 32>;

struct RawHashHash {
  size_t operator()(const RawHash& hash) const {
    size_t value;
    std::memcpy(&value, hash.data(), sizeof value);  // SHA-256 is uniform as it is
    return value;
  }
};

Result<RawHash> raw_hash(const BlobHash& hash) {
  const std::string raw = is_blob_hash(hash) ? from_hex(hash) : std::string();
  RawHash out;
  if (raw.size() != out.size()) return Status(ErrorCode::kInvalid, "`" + hash + "` is not a SHA-256");
  std::memcpy(out.data(), raw.data(), out.size());
  return out;
}

RawHash raw_hash_of_view(std::string_view raw) {
  RawHash out;
  std::memcpy(out.data(), raw.data(), out.size());
  return out;
}

std::string_view view(const RawHash& hash) {
  return {hash.data(), hash.size()};
}

BlobHash hex_of(const RawHash& hash) {
  std::string out;
  for (const char c : hash) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

struct Place {
  uint32_t pack = 0;
  uint64_t offset = 0;
};

class PackStore : public BlobStore {
 public:
  PackStore(std::filesystem::path folder, UniqueFd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  Status load();

  Result<BlobHash> put(std::string_view bytes) override;
  Result<std::string> get(const BlobHash& hash) override;
  bool contains(const BlobHash& hash) override;
  Status bind(const std::string& name, const BlobHash& hash) override;
  Result<std::optional<BlobHash>> lookup(const std::string& name) override;
  Status sync() override;

 private:
  std::filesystem::path pack_path(size_t number) const { return folder_ / fmt::format("{:06}.pack", number); }
  Status load_pack(const std::filesystem::path& path, bool newest);
  void index(uint32_t pack, uint64_t offset, std::string_view payload);
  bool known(const RawHash& hash);
  Result<Place> append(std::string_view payload);  // REQUIRES: append_mutex_

  const std::filesystem::path folder_;
  const UniqueFd lock_;

  std::mutex append_mutex_;  // taken before index_mutex_
  size_t newest_number_ = 0;
  uint64_t appended_ = 0;  // records so far, for group commit

  std::shared_mutex index_mutex_;
  std::vector<std::shared_ptr<RecordFile>> packs_;  // by Place::pack; the last one is appended to
  std::unordered_map<RawHash, Place, RawHashHash> blobs_;
  std::unordered_map<std::string, RawHash> names_;

  std::mutex sync_mutex_;
  uint64_t synced_ = 0;  // records that are durable
};

Status PackStore::load() {
  std::map<size_t, std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    size_t number = 0;
    int end = 0;
    const std::string file = entry.path().filename().string();
    if (std::sscanf(file.c_str(), "%6zu.pack%n", &number, &end) == 1 && end == static_cast<int>(file.size()))
      found[number] = entry.path();
  }
  for (const auto& [number, path] : found) {
    newest_number_ = number;
    FIXIT_RETURN_IF_ERROR(load_pack(path, number == found.rbegin()->first).with_context(path.string()));
  }
  if (!packs_.empty()) return {};
  newest_number_ += 1;
  FIXIT_ASSIGN_OR_RETURN(auto pack, RecordFile::create(pack_path(newest_number_), kPackMagic));
  packs_.push_back(std::move(pack));
  return {};
}

Status PackStore::load_pack(const std::filesystem::path& path, bool newest) {
  const auto pack = static_cast<uint32_t>(packs_.size());
  FIXIT_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  RecordVisitor visitor;
  visitor.record = [&](uint64_t offset, std::string_view payload) {
    index(pack, offset, payload);
    return true;
  };
  visitor.damage = [&](uint64_t offset, uint64_t next) {
    spdlog::error("store: {} is damaged from byte {} to {}; the blobs that stood there are missing",
                  path.string(), offset, next);
    return true;
  };
  FIXIT_ASSIGN_OR_RETURN(const auto scan, scan_records(file.bytes(), kPackMagic, newest, visitor));
  if (scan.torn)
    spdlog::warn("store: {} ends with a torn record: {} bytes after byte {} are {}", path.string(),
                 file.bytes().size() - scan.whole_bytes, scan.whole_bytes,
                 newest ? "cut off" : "passed over");
  if (newest && scan.whole_bytes == 0) {  // crashed while creating it
    std::error_code error;
    std::filesystem::remove(path, error);
    newest_number_ -= 1;
    return {};
  }
  const uint64_t size = newest ? scan.whole_bytes : file.bytes().size();
  FIXIT_ASSIGN_OR_RETURN(auto opened, RecordFile::reopen(path, size));
  packs_.push_back(std::move(opened));
  return {};
}

void PackStore::index(uint32_t pack, uint64_t offset, std::string_view payload) {
  const auto packed = parse_packed(payload);
  if (const auto* blob = std::get_if<PackedBlob>(&packed))
    blobs_.insert_or_assign(raw_hash_of_view(blob->hash), Place{pack, offset});
  else if (const auto* name = std::get_if<PackedName>(&packed))
    names_.emplace(name->name, raw_hash_of_view(name->hash));
  else
    spdlog::error("store: a record of an unknown kind at byte {} of pack {} is passed over", offset, pack);
}

bool PackStore::known(const RawHash& hash) {
  const std::shared_lock lock(index_mutex_);
  return blobs_.contains(hash);
}

Result<Place> PackStore::append(std::string_view payload) {
  if (packs_.back()->size() > kPackBytes) {
    // The old pack must be durable before anything in the new one can claim to be.
    FIXIT_RETURN_IF_ERROR(packs_.back()->sync());
    FIXIT_ASSIGN_OR_RETURN(auto pack, RecordFile::create(pack_path(newest_number_ + 1), kPackMagic));
    newest_number_ += 1;
    const std::unique_lock lock(index_mutex_);
    packs_.push_back(std::move(pack));
  }
  FIXIT_ASSIGN_OR_RETURN(const uint64_t offset, packs_.back()->append(payload));
  appended_ += 1;
  return Place{static_cast<uint32_t>(packs_.size() - 1), offset};
}

Result<BlobHash> PackStore::put(std::string_view bytes) {
  const BlobHash hash = sha256(bytes);
  FIXIT_ASSIGN_OR_RETURN(const RawHash raw, raw_hash(hash));
  if (known(raw)) return hash;
  const std::string payload = pack_blob(view(raw), bytes);
  const std::lock_guard append_lock(append_mutex_);
  if (known(raw)) return hash;
  auto place = append(payload);
  if (!place.ok()) return place.status().with_context("store");
  const std::unique_lock lock(index_mutex_);
  blobs_.emplace(raw, *place);
  return hash;
}

Result<std::string> PackStore::get(const BlobHash& hash) {
  FIXIT_ASSIGN_OR_RETURN(const RawHash raw, raw_hash(hash));
  Place place;
  std::shared_ptr<RecordFile> pack;
  {
    const std::shared_lock lock(index_mutex_);
    const auto found = blobs_.find(raw);
    if (found == blobs_.end()) return Status(ErrorCode::kNotFound, "no blob " + hash + " in the store");
    place = found->second;
    pack = packs_[place.pack];
  }
  auto payload = read_record(pack->fd(), place.offset);
  if (!payload.ok()) return payload.status().with_context("blob " + hash);
  const auto packed = parse_packed(*payload);
  const auto* blob = std::get_if<PackedBlob>(&packed);
  if (!blob || blob->hash != view(raw))
    return Status(ErrorCode::kCorrupt, "blob " + hash + " is not in its place");
  auto bytes = unpack_blob(*blob);
  if (!bytes.ok()) return bytes.status().with_context("blob " + hash);
  return bytes;
}

bool PackStore::contains(const BlobHash& hash) {
  const auto raw = raw_hash(hash);
  return raw.ok() && known(*raw);
}

Status PackStore::bind(const std::string& name, const BlobHash& hash) {
  FIXIT_ASSIGN_OR_RETURN(const RawHash raw, raw_hash(hash));
  if (name.empty() || name.size() > kMaxNameBytes)
    return Status(ErrorCode::kInvalid,
                  fmt::format("a name has 1 to {} bytes, not {}", kMaxNameBytes, name.size()));
  {
    const std::lock_guard append_lock(append_mutex_);
    if (!known(raw))
      return Status(ErrorCode::kNotFound, "no blob " + hash + " in the store to bind " + name + " to");
    std::unique_lock lock(index_mutex_);
    const auto bound = names_.find(name);
    if (bound != names_.end() && bound->second != raw)
      return Status(ErrorCode::kConflict, name + " is bound to " + hex_of(bound->second) + " already");
    if (bound == names_.end()) {
      lock.unlock();
      const auto place = append(pack_name(view(raw), name));
      if (!place.ok()) return place.status().with_context("store");
      lock.lock();
      names_.emplace(name, raw);
    }
  }
  return sync();
}

Result<std::optional<BlobHash>> PackStore::lookup(const std::string& name) {
  const std::shared_lock lock(index_mutex_);
  const auto bound = names_.find(name);
  if (bound == names_.end()) return std::optional<BlobHash>();
  return std::optional<BlobHash>(hex_of(bound->second));
}

Status PackStore::sync() {
  uint64_t goal;
  {
    const std::lock_guard append_lock(append_mutex_);
    goal = appended_;
  }
  const std::lock_guard sync_lock(sync_mutex_);
  if (synced_ >= goal) return {};  // somebody's fsync covered ours while we waited
  std::shared_ptr<RecordFile> pack;
  {
    const std::lock_guard append_lock(append_mutex_);
    goal = appended_;
    pack = packs_.back();
  }
  FIXIT_RETURN_IF_ERROR(pack->sync().with_context("store"));
  synced_ = goal;
  return {};
}

}  // namespace

Result<std::unique_ptr<BlobStore>> open_pack_store(const std::filesystem::path& folder) {
  FIXIT_ASSIGN_OR_RETURN(UniqueFd lock, lock_folder(folder));
  auto store = std::make_unique<PackStore>(folder, std::move(lock));
  FIXIT_RETURN_IF_ERROR(store->load().with_context("opening the store " + folder.string()));
  return Result<std::unique_ptr<BlobStore>>(std::move(store));
}

}  // namespace fixit

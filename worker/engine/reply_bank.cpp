#include "worker/engine/reply_bank.h"

#include <spdlog/spdlog.h>

#include "core/base/file.h"

namespace fixit {

namespace fs = std::filesystem;

std::string reply_key(const std::string& job, int turn, const ChatRequest& request) {
  std::string messages;
  for (const ChatMessage& message : request.messages) messages += sha256_of({message.role, message.content});
  const ModelConfig& model = request.model;
  return sha256_of({job, std::to_string(turn), messages, model.name, model.model, model.sampling_json,
                    std::to_string(model.max_tokens)});
}

Result<std::unique_ptr<ReplyBank>> ReplyBank::open(const fs::path& folder, BlobStore& store) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Status(ErrorCode::kDenied, "making " + folder.string() + ": " + error.message());
  return std::unique_ptr<ReplyBank>(new ReplyBank(folder, store));
}

Result<std::optional<StoredReply>> ReplyBank::find(const std::string& key) {
  FIXIT_ASSIGN_OR_RETURN(const std::optional<BlobHash> hash, store_.lookup("reply/" + key));
  std::string bytes;
  if (hash) {
    FIXIT_ASSIGN_OR_RETURN(bytes, store_.get(*hash));
  } else {
    auto spooled = read_file(file(key));
    if (spooled.status().code() == ErrorCode::kNotFound) return std::optional<StoredReply>();
    if (!spooled.ok()) return spooled.status();
    bytes = *std::move(spooled);
  }
  FIXIT_ASSIGN_OR_RETURN(StoredReply reply, decode<StoredReply>(bytes));
  if (!hash) {
    FIXIT_ASSIGN_OR_RETURN(reply, deliver(key, reply));
  }
  return std::optional<StoredReply>(std::move(reply));
}

Status ReplyBank::spool(const std::string& key, const StoredReply& reply) {
  return write_file_durably(file(key), encode(reply));
}

Result<StoredReply> ReplyBank::deliver(const std::string& key, const StoredReply& reply) {
  FIXIT_ASSIGN_OR_RETURN(const BlobHash hash, store_.put(encode(reply)));
  const Status bound = store_.bind("reply/" + key, hash);
  if (bound.ok()) return reply;
  if (bound.code() != ErrorCode::kConflict) return bound;
  FIXIT_ASSIGN_OR_RETURN(const std::optional<BlobHash> first, store_.lookup("reply/" + key));
  if (!first) return Status(ErrorCode::kUnavailable, "reply/" + key + " is bound and then it is not");
  FIXIT_ASSIGN_OR_RETURN(const std::string bytes, store_.get(*first));
  return decode<StoredReply>(bytes);
}

void ReplyBank::forget(const std::string& key) {
  std::error_code ignored;  // a copy that stays is delivered again, which changes nothing
  fs::remove(file(key), ignored);
}

Result<int> ReplyBank::deliver_leftovers() {
  int delivered = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    const std::string key = path.stem().string();
    if (path.extension() != ".reply" || !is_blob_hash(key)) continue;
    const auto bytes = read_file(path);
    if (bytes.status().code() == ErrorCode::kNotFound) continue;  // its owner was faster
    if (!bytes.ok()) return bytes.status();
    const auto reply = decode<StoredReply>(*bytes);
    if (!reply.ok()) {
      spdlog::error("{}: {}; left where it is", path.string(), reply.status().to_string());
      continue;
    }
    const auto taken = deliver(key, *reply);
    if (!taken.ok()) return taken.status().with_context("delivering " + path.string());
    forget(key);
    ++delivered;
  }
  if (error) return Status(ErrorCode::kUnavailable, "reading " + folder_.string() + ": " + error.message());
  return delivered;
}

}  // namespace fixit

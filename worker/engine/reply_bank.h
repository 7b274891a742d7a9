// Money first: a model's reply is on disk before anything else happens to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/record/job.h"
#include "core/store/store.h"
#include "worker/llm/llm_client.h"

namespace fixit {

// What the name "reply/KEY" is bound to.
struct StoredReply {
  std::string text;
  std::string reasoning;
  std::string finish_reason;
  TokenUsage usage;
  double cost = 0;       // USD
  int64_t begin_ms = 0;  // of the call, unix milliseconds
  int64_t end_ms = 0;
  FIXIT_FIELDS(text, reasoning, finish_reason, usage, cost, begin_ms, end_ms);
};

// Names the reply to one request of one job: equal for whoever resumes the job.
std::string reply_key(const std::string& job, int turn, const ChatRequest& request);

// A local folder, then the coordinator's store. Thread-safe; calls block.
class ReplyBank {
 public:
  // Makes the folder.
  static Result<std::unique_ptr<ReplyBank>> open(const std::filesystem::path& folder, BlobStore& store);

  // A reply paid for before, by anybody; nullopt: the model must be called.
  Result<std::optional<StoredReply>> find(const std::string& key);

  // Writes the reply to the folder (fsync). Must come first.
  Status spool(const std::string& key, const StoredReply& reply);
  // Binds it in the store, durably. The answer is the reply that counts: where another worker's was bound
  // before, that one.
  Result<StoredReply> deliver(const std::string& key, const StoredReply& reply);
  // Drops the folder's copy. REQUIRES: delivered.
  void forget(const std::string& key);

  // Delivers what is in the folder: replies whose worker died, or that came after their job was lost. Stops
  // at the first reply that the store does not take. Returns how many were delivered.
  Result<int> deliver_leftovers();

 private:
  ReplyBank(std::filesystem::path folder, BlobStore& store) : folder_(std::move(folder)), store_(store) {}
  std::filesystem::path file(const std::string& key) const { return folder_ / (key + ".reply"); }

  const std::filesystem::path folder_;
  BlobStore& store_;
};

}  // namespace fixit

#include "coordinator/cli/launch_client.h"

#include "core/wire/remote_store.h"

namespace fixit {
namespace {

constexpr int64_t kBlobTimeoutMs = 60000;
constexpr int64_t kLaunchTimeoutMs = 600000;

}  // namespace

Result<Launched> send_launch(BrokerClient& client, const FrozenResult& frozen, const std::function<Status()>& check) {
  const auto store = make_remote_store(client, kBlobTimeoutMs, 0);
  for (const auto& [hash, bytes] : frozen.blobs.bytes) {
    if (store->contains(hash)) continue;
    const auto stored = store->put(bytes);
    if (!stored.ok()) return stored.status().with_context("uploading what the sweep needs");
  }
  FIXIT_ASSIGN_OR_RETURN(const Message answer, wait_for_answer(client, MessageType::kLaunch,
                                                               encode(LaunchRequest{frozen.sweep}), kLaunchTimeoutMs,
                                                               check));
  return decode<Launched>(answer.body);
}

}  // namespace fixit

// The coordinator's store, seen from a worker, profiler or command line.
#pragma once

#include <memory>

#include "core/store/store.h"
#include "core/wire/broker_client.h"

namespace fixit {

// Calls block up to timeout_ms while the broker is away (kUnavailable or kTimeout after). Blobs read are
// verified against their hash and kept in a memory cache of cache_bytes. `client` must outlive it.
std::unique_ptr<BlobStore> make_remote_store(BrokerClient& client, int64_t timeout_ms, size_t cache_bytes);

}  // namespace fixit

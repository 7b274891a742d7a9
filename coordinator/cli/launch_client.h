// Handing a frozen sweep to the coordinator.
#pragma once

#include "coordinator/cli/command_context.h"
#include "coordinator/launch/launch.h"

namespace fixit {

// Uploads the blobs that the store lacks, then asks for the launch. Idempotent.
Result<Launched> send_launch(BrokerClient& client, const FrozenResult& frozen, const std::function<Status()>& check);

}  // namespace fixit

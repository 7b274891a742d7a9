// Recorded replies in place of a provider.
#pragma once

#include "worker/llm/llm_client.h"

namespace fixit {

// The reply recorded under the request's slot, with estimated usage; kLlmFatal naming the slot and how to
// record it where there is none.
ChatOutcome replay(const ChatRequest& request);

}  // namespace fixit

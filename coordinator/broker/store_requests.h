// Answers to what peers ask of the store.
#pragma once

#include "core/store/store.h"
#include "core/wire/message.h"

namespace fixit {

bool is_store_request(MessageType type);

// REQUIRES: is_store_request(request.type). May block on the disk. Faults are kError answers.
Message answer_store_request(BlobStore& store, const Message& request);

Message error_message(const std::string& id, const Status& status);

}  // namespace fixit

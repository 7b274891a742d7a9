#include "coordinator/broker/store_requests.h"

#include <fmt/format.h>

namespace fixit {
namespace {

Result<Message> put_blob(BlobStore& store, const Message& request) {
  FIXIT_ASSIGN_OR_RETURN(const auto ref, decode<BlobRef>(request.body));
  if (request.blobs.size() != 1)
    return Status(ErrorCode::kInvalid,
                  fmt::format("blob_put comes with one blob, not {}", request.blobs.size()));
  if (sha256(request.blobs[0]) != ref.hash)
    return Status(ErrorCode::kCorrupt, "the bytes of blob " + ref.hash + " have another hash");
  FIXIT_RETURN_IF_ERROR(store.put(request.blobs[0]).status());
  return Message{MessageType::kOk, request.id, {}, {}};
}

Result<Message> get_blob(BlobStore& store, const Message& request) {
  FIXIT_ASSIGN_OR_RETURN(const auto ref, decode<BlobRef>(request.body));
  FIXIT_ASSIGN_OR_RETURN(auto bytes, store.get(ref.hash));
  if (bytes.size() > kMaxBlobBytes)
    return Status(ErrorCode::kUnsupported, fmt::format("blob {} has {} bytes, at most {} can be sent",
                                                       ref.hash, bytes.size(), kMaxBlobBytes));
  Message reply = make_message(MessageType::kBlob, request.id, ref);
  reply.blobs.push_back(std::move(bytes));
  return reply;
}

Result<Message> answer(BlobStore& store, const Message& request) {
  switch (request.type) {
    case MessageType::kBlobHas: {
      FIXIT_ASSIGN_OR_RETURN(const auto ref, decode<BlobRef>(request.body));
      return make_message(MessageType::kBlobFlag, request.id, BlobFlag{store.contains(ref.hash)});
    }
    case MessageType::kBlobGet:
      return get_blob(store, request);
    case MessageType::kBlobPut:
      return put_blob(store, request);
    case MessageType::kNameBind: {
      FIXIT_ASSIGN_OR_RETURN(const auto binding, decode<NameBinding>(request.body));
      FIXIT_RETURN_IF_ERROR(store.bind(binding.name, binding.hash));
      return Message{MessageType::kOk, request.id, {}, {}};
    }
    case MessageType::kNameGet: {
      FIXIT_ASSIGN_OR_RETURN(const auto ref, decode<NameRef>(request.body));
      FIXIT_ASSIGN_OR_RETURN(const auto hash, store.lookup(ref.name));
      return make_message(MessageType::kName, request.id, NameBinding{ref.name, hash.value_or("")});
    }
    default:
      FIXIT_RETURN_IF_ERROR(store.sync());
      return Message{MessageType::kOk, request.id, {}, {}};
  }
}

}  // namespace

bool is_store_request(MessageType type) {
  switch (type) {
    case MessageType::kBlobHas:
    case MessageType::kBlobGet:
    case MessageType::kBlobPut:
    case MessageType::kNameBind:
    case MessageType::kNameGet:
    case MessageType::kStoreSync:
      return true;
    default:
      return false;
  }
}

Message answer_store_request(BlobStore& store, const Message& request) {
  auto reply = answer(store, request);
  return reply.ok() ? std::move(*reply) : error_message(request.id, reply.status());
}

Message error_message(const std::string& id, const Status& status) {
  return make_message(MessageType::kError, id, ErrorReply{status.code(), status.message()});
}

}  // namespace fixit

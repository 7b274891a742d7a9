#include "core/wire/message.h"

#include <fmt/format.h>

namespace fixit {
namespace {

constexpr size_t kMaxEnvelopeBytes = 4096;
constexpr size_t kMaxIdBytes = 256;

// `type` is text here: what another protocol version calls its messages must not hide which version it is.
struct Envelope {
  int version = 0;
  std::string type;
  std::string id;
  int blobs = 0;
  FIXIT_FIELDS(version, type, id, blobs);
};

Status malformed(const std::string& what) {
  return Status(ErrorCode::kCorrupt, "malformed message: " + what);
}

Result<Envelope> decode_envelope(const std::vector<std::string>& frames) {
  if (frames.empty()) return malformed("no frames");
  if (frames[0].size() > kMaxEnvelopeBytes)
    return malformed(
        fmt::format("an envelope of {} bytes, at most {} are accepted", frames[0].size(), kMaxEnvelopeBytes));
  auto handle = decode_object(frames[0]);
  if (!handle.ok()) return malformed("envelope: " + handle.status().message());
  if (handle->get().type != msgpack::type::MAP) return malformed("the envelope is not a map");
  auto envelope = decode<Envelope>(frames[0]);
  if (!envelope.ok()) return malformed("envelope: " + envelope.status().message());
  return envelope;
}

}  // namespace

std::vector<std::string> encode_message(const Message& message) {
  const Envelope envelope{kProtocolVersion, std::string(name_of(message.type)), message.id,
                          static_cast<int>(message.blobs.size())};
  std::vector<std::string> frames = {encode(envelope), message.body};
  frames.insert(frames.end(), message.blobs.begin(), message.blobs.end());
  return frames;
}

Result<Message> decode_message(const std::vector<std::string>& frames) {
  FIXIT_ASSIGN_OR_RETURN(auto envelope, decode_envelope(frames));
  if (envelope.version != kProtocolVersion)
    return Status(
        ErrorCode::kUnsupported,
        fmt::format("the message has protocol version {}, this program (fixit {}) speaks version {}; install "
                    "the same release on both sides",
                    envelope.version, FIXIT_VERSION, kProtocolVersion));
  const auto type = parse_enum<MessageType>(envelope.type);
  if (!type) return malformed("no message type `" + envelope.type.substr(0, 64) + "`");
  if (envelope.id.size() > kMaxIdBytes)
    return malformed(fmt::format("an id of {} bytes", envelope.id.size()));
  if (frames.size() < 2) return malformed("no body frame");
  if (frames[1].size() > kMaxBodyBytes)
    return malformed(
        fmt::format("a body of {} bytes, at most {} are accepted", frames[1].size(), kMaxBodyBytes));
  if (frames.size() - 2 > kMaxBlobs || static_cast<int>(frames.size() - 2) != envelope.blobs)
    return malformed(fmt::format("{} blob frames where the envelope has {}, at most {} are accepted",
                                 frames.size() - 2, envelope.blobs, kMaxBlobs));
  for (size_t i = 2; i < frames.size(); ++i)
    if (frames[i].size() > kMaxBlobBytes)
      return malformed(
          fmt::format("a blob of {} bytes, at most {} are accepted", frames[i].size(), kMaxBlobBytes));
  return Message{*type, std::move(envelope.id), frames[1], {frames.begin() + 2, frames.end()}};
}

std::string message_id(const std::vector<std::string>& frames) {
  auto envelope = decode_envelope(frames);
  return envelope.ok() && envelope->id.size() <= kMaxIdBytes ? envelope->id : std::string();
}

std::string profile_request_key(const ProfileRequest& request) {
  return sha256_of({"profile request 1", request.compile_key, request.definition, encode(request.workloads),
                    encode(request.target), request.binding});
}

FIXIT_CODEC(Hello)
FIXIT_CODEC(ProfileRequest)
FIXIT_CODEC(VerdictReply)
FIXIT_CODEC(LaunchRequest)
FIXIT_CODEC(Launched)
FIXIT_CODEC(JobResult)

}  // namespace fixit

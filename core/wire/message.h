// The project's wire format: what travels between coordinator, workers, profilers and the command line over
// ZeroMQ. A message is frames [envelope][body][blob ...]: envelope and body are msgpack maps, blobs raw
// bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/codec.h"
#include "core/config/gpu_config.h"
#include "core/record/frozen_sweep.h"
#include "core/record/verdict.h"

namespace fixit {

inline constexpr int kProtocolVersion = 1;
inline constexpr size_t kMaxBodyBytes = 64u << 20;
inline constexpr size_t kMaxBlobBytes = 512u << 20;
inline constexpr size_t kMaxBlobs = 16;  // of one message

enum class MessageType {
  kHello,  // first message of every peer: Hello -> kWelcome or kError
  kWelcome,
  kHeartbeat,  // both ways, unanswered
  kGoodbye,    // a peer leaves on purpose: its work is handed on at once
  kError,      // answer to any request: ErrorReply
  kOk,         // answer without content
  // worker or command line -> broker
  kProfile,    // ProfileRequest -> kVerdict (after any time; equal requests are joined)
  kCancel,     // ProfileRef, unanswered
  kBlobHas,    // BlobRef -> kBlobFlag
  kBlobGet,    // BlobRef -> kBlob with one blob frame
  kBlobPut,    // BlobRef and one blob frame -> kOk once stored
  kNameBind,   // NameBinding -> kOk once durable
  kNameGet,    // NameRef -> kName
  kStoreSync,  // -> kOk once every blob put before is durable
  kLaunch,     // LaunchRequest -> kLaunched
  kAwaitJob,   // JobRef -> kJobResult when the journal holds the job's end
  // broker -> profiler
  kCancelled,   // ProfileRef: stop working on it
  kVerdictAck,  // ProfileRef: the broker has it, forget it
  // profiler -> broker
  kCredit,  // Credit: it can take that many more requests
  // answers
  kVerdict,  // VerdictReply; also profiler -> broker, unasked, until acknowledged
  kBlob,
  kBlobFlag,
  kName,
  kLaunched,
  kJobResult,
};

template <>
struct EnumNames<MessageType> {
  static constexpr std::pair<MessageType, std::string_view> values[] = {
      {MessageType::kHello, "hello"},
      {MessageType::kWelcome, "welcome"},
      {MessageType::kHeartbeat, "heartbeat"},
      {MessageType::kGoodbye, "goodbye"},
      {MessageType::kError, "error"},
      {MessageType::kOk, "ok"},
      {MessageType::kProfile, "profile"},
      {MessageType::kCancel, "cancel"},
      {MessageType::kBlobHas, "blob_has"},
      {MessageType::kBlobGet, "blob_get"},
      {MessageType::kBlobPut, "blob_put"},
      {MessageType::kNameBind, "name_bind"},
      {MessageType::kNameGet, "name_get"},
      {MessageType::kStoreSync, "store_sync"},
      {MessageType::kLaunch, "launch"},
      {MessageType::kAwaitJob, "await_job"},
      {MessageType::kCancelled, "cancelled"},
      {MessageType::kVerdictAck, "verdict_ack"},
      {MessageType::kCredit, "credit"},
      {MessageType::kVerdict, "verdict"},
      {MessageType::kBlob, "blob"},
      {MessageType::kBlobFlag, "blob_flag"},
      {MessageType::kName, "name"},
      {MessageType::kLaunched, "launched"},
      {MessageType::kJobResult, "job_result"},
  };
};

struct Message {
  MessageType type = MessageType::kOk;
  std::string id;    // chosen by the asker, repeated in the answer; empty for unanswered messages
  std::string body;  // msgpack of the struct that the type names; empty for none
  std::vector<std::string> blobs;
};

// Frames of a message, without any routing identity. decode_message: kCorrupt for
// malformed frames, kUnsupported (naming both versions) for another protocol version.
std::vector<std::string> encode_message(const Message& message);
Result<Message> decode_message(const std::vector<std::string>& frames);
// The id in the envelope, for answering frames that do not decode; empty if it cannot be read either.
std::string message_id(const std::vector<std::string>& frames);

template <typename Body>
Message make_message(MessageType type, std::string id, const Body& body) {
  return Message{type, std::move(id), encode(body), {}};
}

enum class PeerRole { kWorker, kProfiler, kClient };

template <>
struct EnumNames<PeerRole> {
  static constexpr std::pair<PeerRole, std::string_view> values[] = {
      {PeerRole::kWorker, "worker"}, {PeerRole::kProfiler, "profiler"}, {PeerRole::kClient, "client"}};
};

// What a profiler can prove, registered with the broker and copied into each verdict's environment.
struct ProfilerCapability {
  std::string gpu;        // GPU kind it serves: "cpu", "h100"
  std::string device;     // product name
  std::string evaluator;  // evaluator identity, see VerdictEnvironment
  std::string isolation;
  std::string sandbox;
  bool proves_instructions = false;
  int credits = 2;  // requests it takes at once: one running, one staged
  FIXIT_FIELDS(gpu, device, evaluator, isolation, sandbox, proves_instructions, credits);
};

struct Hello {
  PeerRole role = PeerRole::kClient;
  std::string id;  // unique among live peers, kept across reconnections: host-pid-random
  std::string host;
  int64_t pid = 0;
  std::string version;                           // of the software
  std::optional<ProfilerCapability> capability;  // profilers
  std::vector<std::string> running;              // request keys that a reconnecting profiler still works on
  FIXIT_FIELDS(role, id, host, pid, version, capability, running);
};

struct Welcome {
  std::string coordinator;
  int64_t epoch = 0;
  int64_t heartbeat_ms = 1000;
  FIXIT_FIELDS(coordinator, epoch, heartbeat_ms);
};

struct Heartbeat {
  int64_t sent_ms = 0;
  std::vector<std::string> running;  // profilers: request keys
  FIXIT_FIELDS(sent_ms, running);
};

struct ErrorReply {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  FIXIT_FIELDS(code, message);
};

struct ProfileRequest {
  std::string key;  // profile_request_key(): what is asked; equal keys are one evaluation
  std::string sweep;
  std::string job;  // who asked first, for logs
  int priority = 5;
  int64_t deadline_ms = 0;  // unix; work not begun by then is dropped as INFRA
  std::string gpu;          // GPU kind
  GpuConfig target;
  std::string definition;  // FlashInfer-Trace JSON
  std::vector<FrozenWorkload> workloads;
  BlobHash artifact;  // the shared object
  BlobHash source;    // for logs and line numbers
  std::string compile_key;
  std::string binding = "c";
  bool fresh = false;  // answer by measuring, not from the cache
  FIXIT_FIELDS(key, sweep, job, priority, deadline_ms, gpu, target, definition, workloads, artifact, source,
               compile_key, binding, fresh);
};

// Hash of compile key, definition, workloads, target and binding. The broker adds the profiler's evaluator
// identity and device before it answers from the cache.
std::string profile_request_key(const ProfileRequest& request);

struct VerdictReply {
  std::string key;
  Verdict verdict;  // status kInfra: could not be judged; `check` says which part failed
  FIXIT_FIELDS(key, verdict);
};

struct ProfileRef {
  std::string key;
  std::string reason;
  FIXIT_FIELDS(key, reason);
};

struct Credit {
  int credits = 0;
  FIXIT_FIELDS(credits);
};

struct BlobRef {
  BlobHash hash;
  FIXIT_FIELDS(hash);
};

struct BlobFlag {
  bool present = false;
  FIXIT_FIELDS(present);
};

struct NameRef {
  std::string name;
  FIXIT_FIELDS(name);
};

struct NameBinding {
  std::string name;
  BlobHash hash;  // kName: empty if the name is not bound
  FIXIT_FIELDS(name, hash);
};

struct LaunchRequest {
  FrozenSweep sweep;
  FIXIT_FIELDS(sweep);
};

struct Launched {
  int64_t jobs = 0;                  // of the whole plan
  int64_t enqueued = 0;              // new ones
  int64_t known = 0;                 // queued, running or finished before
  std::vector<std::string> job_ids;  // evaluate sweeps only
  FIXIT_FIELDS(jobs, enqueued, known, job_ids);
};

struct JobRef {
  std::string sweep;
  std::string job;
  FIXIT_FIELDS(sweep, job);
};

struct JobResult {
  std::string turn;  // msgpack of the job's last TurnRecord; empty if it had none
  std::string end;   // msgpack of its JobEndRecord
  FIXIT_FIELDS(turn, end);
};

FIXIT_EXTERN_CODEC(Hello)
FIXIT_EXTERN_CODEC(ProfileRequest)
FIXIT_EXTERN_CODEC(VerdictReply)
FIXIT_EXTERN_CODEC(LaunchRequest)
FIXIT_EXTERN_CODEC(Launched)
FIXIT_EXTERN_CODEC(JobResult)

}  // namespace fixit

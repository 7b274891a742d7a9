// A peer's end of the broker: one DEALER on a thread of its own, requests with answers, reconnection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/wire/message.h"

namespace fixit {

// Thread-safe. Callbacks run on the client's thread and must not block.
class BrokerClient {
 public:
  struct Options {
    // Asked whenever a connection is needed: the leading coordinator's endpoint, or kUnavailable while there
    // is none. Discovery through Redis is the caller's business (queue/registry.h).
    std::function<Result<std::string>()> endpoint;
    Hello hello;
    // Called before each (re)connection's hello, to fill what changes (a profiler's running keys).
    std::function<void(Hello&)> refresh_hello;
    // Messages that answer nothing: kCancelled, kVerdictAck, and for profilers kProfile.
    std::function<void(Message)> on_message;
    // Called after each welcome; true for the first one.
    std::function<void(const Welcome&, bool first)> on_connected;
    // For heartbeats: request keys that are running (profilers).
    std::function<std::vector<std::string>()> running;
    int64_t silence_ms = 10000;  // without a heartbeat from the broker: reconnect
  };
  static std::unique_ptr<BrokerClient> start(Options options);
  virtual ~BrokerClient() = default;  // says goodbye and joins the thread; open requests end with kCancelled

  using Answer = std::function<void(Result<Message>)>;
  // Sends a request under a fresh id and calls `answer` exactly once: with the reply, with the Status of an
  // kError reply, or with kTimeout. Requests survive reconnections: what is unanswered is sent again, so the
  // broker must see equal requests as one.
  virtual void request(MessageType type, std::string body, std::vector<std::string> blobs, int64_t timeout_ms,
                       Answer answer) = 0;
  // The same, waiting. Must not be called from a callback.
  Result<Message> call(MessageType type, std::string body, std::vector<std::string> blobs,
                       int64_t timeout_ms);
  // Sends without an answer; dropped while disconnected.
  virtual void post(Message message) = 0;
  virtual bool connected() const = 0;
};

}  // namespace fixit

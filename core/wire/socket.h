// Typed ends of ZeroMQ sockets. A socket belongs to the thread that polls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/wire/message.h"

namespace fixit {

// ROUTER with ROUTER_MANDATORY. Binds `endpoint` (tcp://127.0.0.1:* takes a free port); an address beyond
// loopback is refused with kDenied. Messages that do not decode are answered with kError and counted.
class RouterSocket {
 public:
  static Result<std::unique_ptr<RouterSocket>> bind(const std::string& endpoint);
  virtual ~RouterSocket() = default;

  virtual std::string endpoint() const = 0;  // the real one, with its port
  // kUnavailable if the peer is gone or its queue is full; the message is then not sent.
  virtual Status send(const std::string& peer, const Message& message) = 0;

  struct Received {
    std::string peer;  // routing identity
    Message message;
  };
  // Waits up to timeout_ms; empty when nothing came. wake() from another thread ends the wait early.
  virtual std::vector<Received> receive(int timeout_ms) = 0;
  virtual void wake() = 0;                // thread-safe
  virtual int64_t malformed() const = 0;  // messages so far that did not decode
};

// kDenied unless only processes of this machine can reach `endpoint`: tcp://127.*, tcp://[::1], ipc://.
Status require_loopback(const std::string& endpoint);

}  // namespace fixit

// One connection to a broker: a DEALER and a monitor that tells when it drops. Private to core/wire.
#pragma once

#include <memory>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "core/base/status.h"
#include "core/wire/message.h"

namespace fixit {

// Belongs to one thread.
class DealerConnection {
 public:
  static Result<std::unique_ptr<DealerConnection>> open(zmq::context_t& context, const std::string& endpoint);
  ~DealerConnection();

  const std::string& endpoint() const { return endpoint_; }
  // kUnavailable if the queue to the broker is full.
  Status send(const Message& message);
  // What has arrived; waits up to timeout_ms for it, for a drop, or for `wake_fd` to be readable.
  std::vector<Message> receive(int timeout_ms, int wake_fd);
  bool dropped() const { return dropped_; }  // the transport broke after it had stood
  // Closing waits up to so many milliseconds (in the context's end) until what was sent has left.
  void linger(int milliseconds) { socket_.set(zmq::sockopt::linger, milliseconds); }

 private:
  DealerConnection(zmq::context_t& context, std::string endpoint);
  void read_monitor();

  std::string endpoint_;
  zmq::socket_t socket_;
  zmq::socket_t monitor_;
  bool dropped_ = false;
};

}  // namespace fixit

#include "core/wire/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <zmq.hpp>

#include "core/wire/frames.h"
#include "core/wire/wake_fd.h"

namespace fixit {
namespace {

constexpr int kQueuedMessages = 10000;   // per peer and direction
constexpr size_t kMessagesAtOnce = 256;  // before the caller's other work gets its turn

class ZmqRouterSocket : public RouterSocket {
 public:
  ZmqRouterSocket() : socket_(context_, zmq::socket_type::router) {}

  void open(const std::string& endpoint) {
    socket_.set(zmq::sockopt::router_mandatory, true);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::sndhwm, kQueuedMessages);
    socket_.set(zmq::sockopt::rcvhwm, kQueuedMessages);
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kMaxBlobBytes));
    if (endpoint.starts_with("tcp://[")) socket_.set(zmq::sockopt::ipv6, true);
    socket_.bind(endpoint);
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  }

  std::string endpoint() const override { return endpoint_; }
  int64_t malformed() const override { return malformed_; }
  void wake() override { wake_.wake(); }

  Status send(const std::string& peer, const Message& message) override {
    std::vector<std::string> frames = encode_message(message);
    frames.insert(frames.begin(), peer);
    try {
      if (send_frames(socket_, frames)) return {};
      return Status(ErrorCode::kUnavailable, "the peer reads nothing: its queue is full");
    } catch (const zmq::error_t& error) {
      return Status(ErrorCode::kUnavailable, fmt::format("the peer is gone ({})", error.what()));
    }
  }

  std::vector<Received> receive(int timeout_ms) override {
    std::vector<Received> received;
    try {
      std::array<zmq::pollitem_t, 2> items = {
          {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_.fd(), ZMQ_POLLIN, 0}}};
      zmq::poll(items, std::chrono::milliseconds(timeout_ms));
      if (items[1].revents & ZMQ_POLLIN) wake_.clear();
      std::vector<std::string> frames;
      for (size_t i = 0; i < kMessagesAtOnce && receive_frames(socket_, frames); ++i) take(frames, received);
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) spdlog::error("{}: receiving: {}", endpoint_, error.what());
    }
    return received;
  }

 private:
  void take(std::vector<std::string>& frames, std::vector<Received>& received) {
    std::string peer = std::move(frames.front());
    frames.erase(frames.begin());
    auto message = decode_message(frames);
    if (message.ok()) {
      received.push_back({std::move(peer), std::move(*message)});
      return;
    }
    malformed_ += 1;
    const ErrorReply reply{message.status().code(), message.status().message()};
    // A peer that is gone already needs no answer.
    (void)send(peer, make_message(MessageType::kError, message_id(frames), reply));
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  WakeFd wake_;
  std::string endpoint_;
  int64_t malformed_ = 0;
};

}  // namespace

Status require_loopback(const std::string& endpoint) {
  if (endpoint.starts_with("ipc://") || endpoint.starts_with("tcp://[::1]:")) return {};
  if (endpoint.starts_with("tcp://127.")) {
    const std::string host = endpoint.substr(6, endpoint.rfind(':') - 6);
    in_addr address{};
    if (inet_pton(AF_INET, host.c_str(), &address) == 1)
      return {};  // a number, not a name such as 127.example.org
  }
  return Status(
      ErrorCode::kDenied,
      endpoint +
          " is reachable beyond this machine, which needs encryption that this version does not have; "
          "use tcp://127.0.0.1:PORT, tcp://[::1]:PORT or ipc://PATH");
}

Result<std::unique_ptr<RouterSocket>> RouterSocket::bind(const std::string& endpoint) {
  FIXIT_RETURN_IF_ERROR(require_loopback(endpoint));
  try {
    auto socket = std::make_unique<ZmqRouterSocket>();
    socket->open(endpoint);
    return Result<std::unique_ptr<RouterSocket>>(std::move(socket));
  } catch (const zmq::error_t& error) {
    const ErrorCode code = error.num() == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kInvalid;
    return Status(code, fmt::format("listening on {}: {}", endpoint, error.what()));
  }
}

}  // namespace fixit

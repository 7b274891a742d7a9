#include "core/wire/dealer_connection.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>

#include "core/base/hash.h"
#include "core/wire/frames.h"

namespace fixit {
namespace {

constexpr int kQueuedMessages = 10000;
constexpr size_t kMessagesAtOnce = 256;

}  // namespace

DealerConnection::DealerConnection(zmq::context_t& context, std::string endpoint)
    : endpoint_(std::move(endpoint)),
      socket_(context, zmq::socket_type::dealer),
      monitor_(context, zmq::socket_type::pair) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::sndhwm, kQueuedMessages);
  socket_.set(zmq::sockopt::rcvhwm, kQueuedMessages);
  socket_.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kMaxBlobBytes));
  if (endpoint_.starts_with("tcp://[")) socket_.set(zmq::sockopt::ipv6, true);
  const std::string watch = "inproc://monitor-" + random_hex(8);
  if (zmq_socket_monitor(socket_.handle(), watch.c_str(), ZMQ_EVENT_DISCONNECTED) != 0) throw zmq::error_t();
  monitor_.set(zmq::sockopt::linger, 0);
  monitor_.connect(watch);
  socket_.connect(endpoint_);
}

DealerConnection::~DealerConnection() {
  zmq_socket_monitor(socket_.handle(), nullptr, 0);
}

Result<std::unique_ptr<DealerConnection>> DealerConnection::open(zmq::context_t& context,
                                                                 const std::string& endpoint) {
  try {
    return std::unique_ptr<DealerConnection>(new DealerConnection(context, endpoint));
  } catch (const zmq::error_t& error) {
    return Status(ErrorCode::kInvalid, fmt::format("connecting to {}: {}", endpoint, error.what()));
  }
}

Status DealerConnection::send(const Message& message) {
  try {
    if (send_frames(socket_, encode_message(message))) return {};
    return Status(ErrorCode::kUnavailable, endpoint_ + " reads nothing: the queue to it is full");
  } catch (const zmq::error_t& error) {
    return Status(ErrorCode::kUnavailable, fmt::format("sending to {}: {}", endpoint_, error.what()));
  }
}

std::vector<Message> DealerConnection::receive(int timeout_ms, int wake_fd) {
  std::vector<Message> messages;
  try {
    std::array<zmq::pollitem_t, 3> items = {{{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                             {monitor_.handle(), 0, ZMQ_POLLIN, 0},
                                             {nullptr, wake_fd, ZMQ_POLLIN, 0}}};
    zmq::poll(items, std::chrono::milliseconds(timeout_ms));
    std::vector<std::string> frames;
    for (size_t i = 0; i < kMessagesAtOnce && receive_frames(socket_, frames); ++i) {
      auto message = decode_message(frames);
      if (message.ok())
        messages.push_back(std::move(*message));
      else
        spdlog::error("broker {}: {}", endpoint_, message.status().message());
    }
    if (items[1].revents & ZMQ_POLLIN) read_monitor();
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) dropped_ = true;
  }
  return messages;
}

void DealerConnection::read_monitor() {
  std::vector<std::string> frames;
  while (receive_frames(monitor_, frames)) dropped_ = true;  // the one event that is watched for
}

}  // namespace fixit

#include "core/wire/frames.h"

namespace fixit {

bool send_frames(zmq::socket_t& socket, const std::vector<std::string>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    auto flags = zmq::send_flags::dontwait;
    if (i + 1 < frames.size()) flags = flags | zmq::send_flags::sndmore;
    // Only the first frame can meet a full queue: libzmq counts whole messages.
    if (!socket.send(zmq::buffer(frames[i]), flags)) return false;
  }
  return true;
}

bool receive_frames(zmq::socket_t& socket, std::vector<std::string>& frames) {
  frames.clear();
  zmq::message_t frame;
  do {
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) return false;
    if (frames.size() <= kMaxFrames) frames.push_back(frame.to_string());
  } while (frame.more());
  return true;
}

}  // namespace fixit

// Multipart messages of cppzmq to and from strings. Private to core/wire.
#pragma once

#include <string>
#include <vector>
#include <zmq.hpp>

#include "core/wire/message.h"

namespace fixit {

inline constexpr size_t kMaxFrames = kMaxBlobs + 3;  // routing identity, envelope, body, blobs

// All frames or none, without waiting. False if the queue is full. Throws zmq::error_t.
bool send_frames(zmq::socket_t& socket, const std::vector<std::string>& frames);

// One multipart message without waiting; false if none is there. Of an endless one the first kMaxFrames + 1
// frames are kept, which no decoder accepts. Throws zmq::error_t.
bool receive_frames(zmq::socket_t& socket, std::vector<std::string>& frames);

}  // namespace fixit

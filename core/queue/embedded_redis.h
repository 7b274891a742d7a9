// A private redis-server as a child process: `redis: embedded`, and the tests' server.
#pragma once

#include <filesystem>
#include <memory>

#include "core/base/status.h"
#include "core/queue/redis.h"

namespace fixit {

// Listens on a Unix socket and on a free loopback port, appends to a file in `folder` with fsync every
// second, noeviction. Stopped by the destructor (SIGTERM, at which Redis writes out its file; SIGKILL after 5
// s); dies with its parent. A socket that a live server in `folder` already serves is joined instead of
// started, and then not stopped.
class EmbeddedRedis {
 public:
  static Result<std::unique_ptr<EmbeddedRedis>> start(const std::filesystem::path& folder);
  virtual ~EmbeddedRedis() = default;
  virtual RedisAddress address() const = 0;
  virtual std::string url() const = 0;  // for FIXIT_REDIS of child programs
  virtual int pid() const = 0;          // 0 if joined
};

}  // namespace fixit

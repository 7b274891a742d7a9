// A redis-server of one test's own.
#pragma once

#include <memory>
#include <string>

#include "core/queue/embedded_redis.h"
#include "tests/support/temporary_folder.h"

namespace fixit::testing {

// Runs on a folder of its own until the destructor. Aborts the test program if it cannot be started.
class PrivateRedis {
 public:
  PrivateRedis();

  // A new connection.
  std::unique_ptr<Redis> connect(int timeout_ms = 5000) const;
  std::string url() const { return server_->url(); }  // unix:///path/to/socket, for child programs
  RedisAddress address() const { return server_->address(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  void kill();   // SIGKILL: what was written but not yet synced stays in the kernel, so nothing is lost
  void start();  // again after kill(), on the same folder and socket; the port is another

 private:
  TemporaryFolder folder_;
  std::unique_ptr<EmbeddedRedis> server_;
};

}  // namespace fixit::testing

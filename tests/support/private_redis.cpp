#include "tests/support/private_redis.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>

namespace fixit::testing {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

}  // namespace

PrivateRedis::PrivateRedis() {
  start();
}

std::unique_ptr<Redis> PrivateRedis::connect(int timeout_ms) const {
  return must(Redis::connect(server_->address(), timeout_ms));
}

void PrivateRedis::kill() {
  ::kill(server_->pid(), SIGKILL);
  server_.reset();
}

void PrivateRedis::start() {
  server_ = must(EmbeddedRedis::start(folder_.path()));
}

}  // namespace fixit::testing

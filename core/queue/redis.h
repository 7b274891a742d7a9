// One connection to Redis, behind an interface that tests can break.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fixit {

struct RedisReply {
  enum class Kind { kNil, kInteger, kString, kArray, kError } kind = Kind::kNil;
  int64_t integer = 0;
  std::string text;  // of kString and kError
  std::vector<RedisReply> items;
  bool is_nil() const { return kind == Kind::kNil; }
};

struct RedisAddress {
  std::string host = "127.0.0.1";  // or unix_socket
  int port = 6379;
  int database = 0;
  std::string unix_socket;
  std::string user;
  std::string password;  // from an environment variable; never logged
};
// redis://[user@]host:port[/db] or unix:///path. The password is read from the variable named password_env.
Result<RedisAddress> parse_redis_url(const std::string& url, const std::string& password_env);

// Thread-safe: calls are serialised. Reconnects by itself with backoff; a call during an outage returns
// kUnavailable within its timeout and never spins.
class Redis {
 public:
  virtual ~Redis() = default;
  using Command = std::vector<std::string>;
  // A kError reply becomes a Status: see redis_error().
  virtual Result<RedisReply> call(const Command& command) = 0;
  // The longest that call() takes. A blocking command (BLPOP) must ask for less.
  virtual int timeout_ms() const { return 5000; }
  // Sends all, then reads all; here the timeout is the longest wait for the next reply. Errors of single
  // commands stay in their replies.
  virtual Result<std::vector<RedisReply>> pipeline(const std::vector<Command>& commands) = 0;
  static Result<std::unique_ptr<Redis>> connect(const RedisAddress& address, int timeout_ms = 5000);
};

// The Status of an error reply: kDenied (NOAUTH, NOPERM, WRONGPASS), kFull (OOM; MISCONF: its disk is full),
// kUnavailable (LOADING, BUSY, READONLY, MASTERDOWN), kNotFound (NOSCRIPT), else kInternal; with Redis's
// text.
Status redis_error(const std::string& text);

// Refuses, saying what to change: a server before 7, maxmemory-policy other than noeviction, no persistence
// (neither append-only file nor snapshots) unless allow_volatile, a schema other than ours.
Status check_redis(Redis& redis, bool allow_volatile);

}  // namespace fixit

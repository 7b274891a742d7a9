#include "core/queue/redis.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "fmt/format.h"

namespace fixit {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kFirstBackoff{20};
constexpr milliseconds kLongestBackoff{1000};

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

RedisReply convert(const redisReply& raw) {
  RedisReply reply;
  switch (raw.type) {
    case REDIS_REPLY_INTEGER:
      reply.kind = RedisReply::Kind::kInteger;
      reply.integer = raw.integer;
      break;
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_STRING:
      reply.kind = RedisReply::Kind::kString;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.kind = RedisReply::Kind::kError;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.kind = RedisReply::Kind::kArray;
      reply.items.reserve(raw.elements);
      for (size_t i = 0; i < raw.elements; ++i) reply.items.push_back(convert(*raw.element[i]));
      break;
    default:
      break;
  }
  return reply;
}

void append_command(const Redis::Command& command, std::string& out) {
  std::vector<const char*> words;
  std::vector<size_t> sizes;
  words.reserve(command.size());
  sizes.reserve(command.size());
  for (const std::string& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const int size =
      redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), words.data(), sizes.data());
  if (size > 0) out.append(formatted, static_cast<size_t>(size));
  if (formatted != nullptr) redisFreeCommand(formatted);
}

// hiredis connects and parses; writing and reading are done here with poll(), because its own timeouts bound
// each read and not the whole call.
class Connection final : public Redis {
 public:
  Connection(RedisAddress address, int timeout_ms) : address_(std::move(address)), timeout_(timeout_ms) {}

  int timeout_ms() const override { return static_cast<int>(timeout_.count()); }

  Result<RedisReply> call(const Command& command) override {
    FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> replies, pipeline({command}));
    if (replies[0].kind == RedisReply::Kind::kError) return redis_error(replies[0].text);
    return std::move(replies[0]);
  }

  Result<std::vector<RedisReply>> pipeline(const std::vector<Command>& commands) override {
    const auto deadline = Steady::now() + timeout_;
    std::string out;
    for (const Command& command : commands) {
      if (command.empty()) return Status(ErrorCode::kInternal, "redis: an empty command");
      append_command(command, out);
    }
    std::unique_lock lock(mutex_, deadline);
    if (!lock.owns_lock()) return unavailable("the connection is busy with other calls");
    FIXIT_RETURN_IF_ERROR(ensure_connected(deadline));
    return exchange(out, commands.size(), deadline);
  }

  Status open_first() {
    std::unique_lock lock(mutex_);
    return ensure_connected(Steady::now() + timeout_);
  }

 private:
  std::string where() const {
    return address_.unix_socket.empty() ? fmt::format("{}:{}", address_.host, address_.port)
                                        : address_.unix_socket;
  }
  Status unavailable(std::string_view why) const {
    return Status(ErrorCode::kUnavailable, fmt::format("redis at {}: {}", where(), why));
  }
  static milliseconds left(Steady::time_point deadline) {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Steady::now()));
  }

  // False once the peer has closed an idle connection: found out before a command is sent, so that a command
  // is never sent twice. Bytes that nobody asked for also end a connection.
  bool still_open() const {
    char byte;
    const ssize_t got = recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  }

  Status ensure_connected(Steady::time_point deadline) {
    if (context_ && !still_open()) context_.reset();
    while (!context_) {
      if (next_attempt_ > Steady::now()) std::this_thread::sleep_until(std::min(next_attempt_, deadline));
      if (Steady::now() >= deadline) return unavailable(last_error_);
      const Status opened = open(deadline);
      if (opened.ok()) {
        backoff_ = milliseconds(0);
        return opened;
      }
      context_.reset();
      if (opened.code() != ErrorCode::kUnavailable) return opened;
      last_error_ = opened.message();
      backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
      next_attempt_ = Steady::now() + backoff_;
    }
    return {};
  }

  Status open(Steady::time_point deadline) {
    const auto wait = std::max(milliseconds(1), left(deadline));
    const timeval limit{wait.count() / 1000, (wait.count() % 1000) * 1000};
    context_.reset(address_.unix_socket.empty()
                       ? redisConnectWithTimeout(address_.host.c_str(), address_.port, limit)
                       : redisConnectUnixWithTimeout(address_.unix_socket.c_str(), limit));
    if (!context_) return Status(ErrorCode::kInternal, "redis: out of memory");
    if (context_->err != 0) return Status(ErrorCode::kUnavailable, context_->errstr);
    if (address_.unix_socket.empty()) redisEnableKeepAlive(context_.get());
    fcntl(context_->fd, F_SETFL, fcntl(context_->fd, F_GETFL) | O_NONBLOCK);
    return greet(deadline);
  }

  Status greet(Steady::time_point deadline) {
    std::vector<Command> commands;
    if (!address_.password.empty()) {
      commands.push_back({"AUTH"});
      if (!address_.user.empty()) commands.back().push_back(address_.user);
      commands.back().push_back(address_.password);
    }
    if (address_.database != 0) commands.push_back({"SELECT", std::to_string(address_.database)});
    if (commands.empty()) return {};
    std::string out;
    for (const Command& command : commands) append_command(command, out);
    FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> replies, exchange(out, commands.size(), deadline));
    for (const RedisReply& reply : replies)
      if (reply.kind == RedisReply::Kind::kError)
        return redis_error(reply.text).with_context("redis at " + where());
    return {};
  }

  // REQUIRES: connected. A connection whose answer is not read to its end is closed: a later call must never
  // take an earlier call's reply for its own.
  Result<std::vector<RedisReply>> exchange(const std::string& out, size_t expected,
                                           Steady::time_point deadline) {
    std::vector<RedisReply> replies;
    replies.reserve(expected);
    size_t sent = 0;
    while (replies.size() < expected) {
      void* raw = nullptr;
      if (redisReaderGetReply(context_->reader, &raw) != REDIS_OK)
        return drop(fmt::format("unreadable reply: {}", context_->reader->errstr));
      if (raw != nullptr) {
        const std::unique_ptr<redisReply, FreeReply> owned(static_cast<redisReply*>(raw));
        replies.push_back(convert(*owned));
        continue;
      }
      pollfd ready{context_->fd, static_cast<short>(sent < out.size() ? POLLIN | POLLOUT : POLLIN), 0};
      const int events = poll(&ready, 1, static_cast<int>(left(deadline).count()));
      if (events < 0 && errno == EINTR) continue;
      if (events <= 0) return drop(fmt::format("no answer within {} ms", timeout_.count()));
      if ((ready.revents & POLLOUT) != 0) {
        const ssize_t wrote = send(context_->fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
        if (wrote > 0) sent += static_cast<size_t>(wrote);
        if (wrote < 0 && errno != EAGAIN && errno != EINTR) return drop(std::strerror(errno));
      }
      if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        FIXIT_ASSIGN_OR_RETURN(const bool progress, read_some());
        if (progress) deadline = Steady::now() + timeout_;
      }
    }
    return replies;
  }

  Result<bool> read_some() {
    char buffer[64 * 1024];
    const ssize_t got = recv(context_->fd, buffer, sizeof buffer, 0);
    if (got == 0) return drop("the server closed the connection");
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      return drop(std::strerror(errno));
    }
    if (redisReaderFeed(context_->reader, buffer, static_cast<size_t>(got)) != REDIS_OK)
      return drop("out of memory for a reply");
    return true;
  }

  Status drop(const std::string& why) {
    context_.reset();
    last_error_ = why;
    return unavailable(why);
  }

  const RedisAddress address_;
  const milliseconds timeout_;
  std::timed_mutex mutex_;  // guards what follows
  std::unique_ptr<redisContext, FreeContext> context_;
  std::string last_error_ = "not connected yet";
  milliseconds backoff_{0};
  Steady::time_point next_attempt_{};
};

}  // namespace

Result<std::unique_ptr<Redis>> Redis::connect(const RedisAddress& address, int timeout_ms) {
  auto connection = std::make_unique<Connection>(address, std::max(1, timeout_ms));
  FIXIT_RETURN_IF_ERROR(connection->open_first());
  return std::unique_ptr<Redis>(std::move(connection));
}

Status redis_error(const std::string& text) {
  const std::string_view word = std::string_view(text).substr(0, text.find(' '));
  ErrorCode code = ErrorCode::kInternal;
  if (word == "NOAUTH" || word == "NOPERM" || word == "WRONGPASS") code = ErrorCode::kDenied;
  if (word == "OOM" || word == "MISCONF") code = ErrorCode::kFull;
  if (word == "LOADING" || word == "BUSY" || word == "READONLY" || word == "MASTERDOWN")
    code = ErrorCode::kUnavailable;
  if (word == "NOSCRIPT") code = ErrorCode::kNotFound;
  return Status(code, "redis: " + text);
}

}  // namespace fixit

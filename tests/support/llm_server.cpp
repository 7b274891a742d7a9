#include "tests/support/llm_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace fixit {
namespace {

// Reads head and body of one request; false where the client went away before.
bool read_request(int fd, LlmServerRequest& request) {
  std::string bytes;
  char buffer[65536];
  size_t head = std::string::npos;
  size_t length = 0;
  while (head == std::string::npos || bytes.size() < head + 4 + length) {
    const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    bytes.append(buffer, static_cast<size_t>(got));
    if (head != std::string::npos) continue;
    head = bytes.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    const size_t at = bytes.find("Content-Length: ");
    if (at < head) length = std::strtoul(bytes.c_str() + at + 16, nullptr, 10);
  }
  request.head = bytes.substr(0, head);
  request.body = bytes.substr(head + 4, length);
  return true;
}

bool send_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

LlmServerReply http_reply(int status, const std::string& headers, const std::string& body) {
  return {{fmt::format("HTTP/1.1 {} x\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       headers, body.size(), body)}};
}

LlmServerReply sse_reply(const std::vector<std::string>& events, size_t piece) {
  std::string stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
  for (const std::string& event : events) stream += "data: " + event + "\n\n";
  LlmServerReply reply;
  for (size_t at = 0; at < stream.size(); at += piece) reply.pieces.push_back(stream.substr(at, piece));
  return reply;
}

std::vector<std::string> answer_events(const std::string& text, const std::string& finish, size_t delta) {
  using nlohmann::json;
  std::vector<std::string> events;
  for (size_t at = 0; at < text.size(); at += delta)
    events.push_back(
        json{{"choices", {{{"index", 0}, {"delta", {{"content", text.substr(at, delta)}}}}}}}.dump());
  events.push_back(
      json{{"choices", {{{"index", 0}, {"delta", json::object()}, {"finish_reason", finish}}}}}.dump());
  events.push_back(
      json{{"choices", json::array()}, {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 7}}}}.dump());
  events.push_back("[DONE]");
  return events;
}

LlmServer::LlmServer(std::function<LlmServerReply(const LlmServerRequest&)> script)
    : script_(std::move(script)) {
  listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), 512) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

LlmServer::~LlmServer() {
  stop_ = true;
  shutdown(listener_.get(), SHUT_RDWR);  // wakes accept
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

std::string LlmServer::base_url() const {
  return fmt::format("http://127.0.0.1:{}/v1", port_);
}

void LlmServer::accept_all() {
  while (!stop_) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void LlmServer::serve(int connection) {
  LlmServerRequest request;
  if (read_request(connection, request)) {
    request.number = requests_++;
    const int now = ++at_once_;
    for (int seen = most_at_once_; seen < now && !most_at_once_.compare_exchange_weak(seen, now);) {
    }
    const int no_delay = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay));
    const LlmServerReply reply = script_(request);
    for (const std::string& piece : reply.pieces)
      if (!send_all(connection, piece)) break;
    char byte = 0;
    if (reply.end == LlmServerReply::End::kSilent)
      while (recv(connection, &byte, 1, 0) > 0) {
      }
    --at_once_;
    if (reply.end == LlmServerReply::End::kReset) {
      const linger now_and_hard{1, 0};
      setsockopt(connection, SOL_SOCKET, SO_LINGER, &now_and_hard, sizeof(now_and_hard));
    }
  }
  const std::lock_guard lock(mutex_);
  open_.erase(std::find(open_.begin(), open_.end(), connection));
  close(connection);
}

}  // namespace fixit

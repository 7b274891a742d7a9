// A stand-in for a model provider: an HTTP server on the loopback that answers by script, faults included.
// Raw sockets, because resets, stalls and torn streams are what it is for.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/file.h"

namespace fixit {

struct LlmServerRequest {
  std::string head;  // request line and headers
  std::string body;
  int number = 0;  // 0-based, over all requests
};

struct LlmServerReply {
  enum class End {
    kClose,   // orderly
    kReset,   // RST
    kSilent,  // the connection stays open without a byte until the client closes it
  };
  std::vector<std::string> pieces;  // raw bytes of the response, one send each
  End end = End::kClose;
};

// "HTTP/1.1 STATUS x" with extra header lines ("Retry-After: 1\r\n") and a body.
LlmServerReply http_reply(int status, const std::string& headers, const std::string& body);
// A stream of SSE events, cut into pieces of `piece` bytes; close-delimited.
LlmServerReply sse_reply(const std::vector<std::string>& events, size_t piece = 1 << 16);
// The usual events of an answer: content in deltas of `delta` bytes, finish reason, usage, [DONE].
std::vector<std::string> answer_events(const std::string& text, const std::string& finish = "stop",
                                       size_t delta = 5);

class LlmServer {
 public:
  // `script` is called on a thread per connection; it must be thread-safe.
  explicit LlmServer(std::function<LlmServerReply(const LlmServerRequest&)> script);
  ~LlmServer();

  std::string base_url() const;
  int requests() const { return requests_; }
  // The most connections that were answered at one time.
  int most_at_once() const { return most_at_once_; }

 private:
  void accept_all();
  void serve(int connection);

  const std::function<LlmServerReply(const LlmServerRequest&)> script_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<int> requests_ = 0;
  std::atomic<int> at_once_ = 0;
  std::atomic<int> most_at_once_ = 0;
  std::mutex mutex_;
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::vector<int> open_;             // guarded by mutex_; shut down by the destructor
  std::thread acceptor_;
};

}  // namespace fixit

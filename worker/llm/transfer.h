// One attempt at a chat completion: an HTTP transfer on a libcurl easy handle.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "worker/llm/chat_answer.h"
#include "worker/llm/chat_request.h"
#include "worker/llm/llm_client.h"
#include "worker/llm/sse.h"

namespace fixit {

// Immovable: libcurl holds pointers into it. Used by one thread.
class Transfer {
 public:
  // Prepares without connecting. Errors are final: no key, a bad base_url, bad sampling parameters. `request`
  // must outlive the transfer.
  static Result<std::unique_ptr<Transfer>> prepare(const ChatRequest& request);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  CURL* handle() const { return easy_; }

  // The moment (steady milliseconds) after which silence means a stall; moves as bytes arrive.
  int64_t silence_deadline_ms() const;

  // What came of it. `ended` is libcurl's word; kLlmTransient means that another attempt may work.
  ChatOutcome outcome(CURLcode ended);
  // The same for a transfer that passed its silence deadline.
  ChatOutcome outcome_of_silence();

 private:
  Transfer(const ChatRequest& request, Endpoint endpoint, std::string key, std::string body);
  bool set_up();
  static size_t on_bytes(char* bytes, size_t size, size_t count, void* self);
  bool take(std::string_view bytes);
  bool streamed(std::string_view first_bytes) const;
  int http_status() const;
  ChatOutcome judge(bool complete, const std::string& why_not);
  ChatFailure failure(TurnStatus status, const std::string& message) const;
  ChatFailure fault(int status, const ProviderError& error) const;

  const ChatRequest& request_;
  const Endpoint endpoint_;
  const std::string key_;
  const std::string body_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  const int64_t begin_ms_;
  int64_t last_byte_ms_ = 0;  // 0: none yet
  size_t received_ = 0;
  enum class Form { kUnknown, kStream, kDocument } form_ = Form::kUnknown;
  std::string document_;  // a JSON answer, or the beginning of an error's body
  SseParser events_;
  ChatAnswer answer_;
  bool done_event_ = false;
  bool too_large_ = false;
};

}  // namespace fixit

#include "worker/llm/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/clock.h"
#include "worker/llm/provider_fault.h"

namespace fixit {
namespace {

constexpr size_t kResponseLimit = 64u << 20;
constexpr size_t kErrorBodyLimit = 64u << 10;
constexpr int64_t kAfterDoneMs =
    250;  // for the end of the stream after [DONE], so that the connection can be reused

long milliseconds(double seconds) {
  return std::max(1L, static_cast<long>(std::min(seconds, 1e6) * 1000));
}

std::string advice(int status, const ModelConfig& model) {
  if (status == 401 || status == 403)
    return model.api_key_env.empty() ? "; the provider wants a key: name its variable in api_key_env"
                                     : fmt::format("; check the key in {}", model.api_key_env);
  if (status == 404) return "; check base_url and model in the model's file";
  if (status >= 300 && status < 400)
    return "; redirects are not followed: put the final address into base_url";
  return "";
}

}  // namespace

Result<std::unique_ptr<Transfer>> Transfer::prepare(const ChatRequest& request) {
  FIXIT_ASSIGN_OR_RETURN(std::string key, api_key(request.model));
  FIXIT_ASSIGN_OR_RETURN(Endpoint endpoint, chat_endpoint(request.model));
  FIXIT_ASSIGN_OR_RETURN(std::string body, chat_request_body(request));
  std::unique_ptr<Transfer> transfer(
      new Transfer(request, std::move(endpoint), std::move(key), std::move(body)));
  if (!transfer->set_up())
    return Status(ErrorCode::kInternal,
                  fmt::format("model {}: libcurl cannot set up a request", request.model.name));
  return transfer;
}

Transfer::Transfer(const ChatRequest& request, Endpoint endpoint, std::string key, std::string body)
    : request_(request),
      endpoint_(std::move(endpoint)),
      key_(std::move(key)),
      body_(std::move(body)),
      easy_(curl_easy_init()),
      begin_ms_(Clock::system().steady_ms()) {}

Transfer::~Transfer() {
  if (easy_ != nullptr) curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
}

bool Transfer::set_up() {
  if (easy_ == nullptr) return false;
  std::vector<std::string> lines = {"Content-Type: application/json",
                                    "Accept: text/event-stream, application/json", "Expect:"};
  if (!key_.empty()) lines.push_back("Authorization: Bearer " + key_);
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(headers_, line.c_str());
    if (longer == nullptr) return false;
    headers_ = longer;
  }
  bool ok = true;
  const auto set = [this, &ok](CURLoption option, auto value) {
    ok = ok && curl_easy_setopt(easy_, option, value) == CURLE_OK;
  };
  const ModelConfig& model = request_.model;
  set(CURLOPT_URL, endpoint_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTPHEADER, headers_);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
  set(CURLOPT_POSTFIELDS, body_.data());
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_bytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "fixit/" FIXIT_VERSION);
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(model.connect_timeout_s));
  set(CURLOPT_TIMEOUT_MS, milliseconds(model.total_timeout_s));
  if (endpoint_.loopback)
    set(CURLOPT_PROXY, "");  // a proxy of the environment cannot reach this machine's loopback
  return ok;
}

size_t Transfer::on_bytes(char* bytes, size_t size, size_t count, void* self) {
  const size_t length = size * count;
  return static_cast<Transfer*>(self)->take({bytes, length}) ? length : 0;
}

bool Transfer::streamed(std::string_view first_bytes) const {
  const char* type = nullptr;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_TYPE, &type);
  const std::string_view declared = type == nullptr ? "" : type;
  if (declared.find("event-stream") != std::string_view::npos) return true;
  if (declared.find("json") != std::string_view::npos) return false;
  const size_t first = first_bytes.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || first_bytes[first] != '{';
}

bool Transfer::take(std::string_view bytes) {
  last_byte_ms_ = Clock::system().steady_ms();
  if (http_status() != 200) {
    document_.append(bytes.substr(0, kErrorBodyLimit - document_.size()));
    return document_.size() < kErrorBodyLimit;
  }
  received_ += bytes.size();
  too_large_ = too_large_ || received_ > kResponseLimit;
  if (too_large_) return false;
  if (form_ == Form::kUnknown) form_ = streamed(bytes) ? Form::kStream : Form::kDocument;
  if (form_ == Form::kDocument) {
    document_.append(bytes);
    return true;
  }
  const bool fits = events_.feed(bytes, [this](std::string_view data) {
    done_event_ = done_event_ || data == "[DONE]";
    answer_.add_event(data);
  });
  too_large_ = !fits;
  return fits;
}

int64_t Transfer::silence_deadline_ms() const {
  if (last_byte_ms_ == 0) return begin_ms_ + milliseconds(request_.model.first_byte_timeout_s);
  if (done_event_) return last_byte_ms_ + kAfterDoneMs;
  return last_byte_ms_ + milliseconds(request_.model.stall_timeout_s);
}

int Transfer::http_status() const {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

ChatFailure Transfer::failure(TurnStatus status, const std::string& message) const {
  ChatFailure failure;
  failure.status = status;
  failure.message =
      redact(fmt::format("model {} at {}: {}", request_.model.name, endpoint_.shown, message), key_);
  curl_off_t seconds = 0;  // both forms of the header, seconds and date, are read by libcurl
  if (curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    failure.retry_after_ms = static_cast<int64_t>(std::min<curl_off_t>(seconds, 86'400)) * 1000;
  return failure;
}

ChatFailure Transfer::fault(int status, const ProviderError& error) const {
  const TurnStatus meaning = classify_fault(status, error);
  return failure(meaning, describe_fault(status, error, key_) + advice(status, request_.model));
}

ChatOutcome Transfer::outcome(CURLcode ended) {
  const int status = http_status();
  if (too_large_)
    return failure(TurnStatus::kLlmFatal,
                   fmt::format("the answer is larger than {} MiB", kResponseLimit >> 20));
  if (status != 0 && status != 200) {
    const auto error = parse_provider_error(document_);
    return fault(status, error ? *error : ProviderError{"", document_, 0});
  }
  if (ended == CURLE_PEER_FAILED_VERIFICATION || ended == CURLE_UNSUPPORTED_PROTOCOL ||
      ended == CURLE_URL_MALFORMAT)
    return failure(TurnStatus::kLlmFatal, curl_easy_strerror(ended));
  return judge(ended == CURLE_OK, curl_easy_strerror(ended));
}

ChatOutcome Transfer::outcome_of_silence() {
  const double seconds =
      last_byte_ms_ == 0 ? request_.model.first_byte_timeout_s : request_.model.stall_timeout_s;
  return judge(false, last_byte_ms_ == 0 ? fmt::format("no answer began within {:g} s", seconds)
                                         : fmt::format("the answer stalled for {:g} s", seconds));
}

ChatOutcome Transfer::judge(bool complete, const std::string& why_not) {
  if (form_ == Form::kDocument && complete) answer_.add_document(document_);
  if (answer_.error()) return fault(200, *answer_.error());
  if (answer_.malformed()) return failure(TurnStatus::kLlmTransient, "the answer holds malformed JSON");
  const bool whole = form_ == Form::kDocument ? complete : true;
  // What follows the finish reason is only usage: the answer itself is there, and paid.
  if (whole && answer_.finished()) return answer_.take_reply(request_);
  if (!complete) return failure(TurnStatus::kLlmTransient, why_not);
  return failure(TurnStatus::kLlmTransient, "the answer ended without a finish reason");
}

}  // namespace fixit

#include "worker/llm/chat_request.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

namespace fixit {
namespace {

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  const std::string result = text;
  curl_free(text);
  return result;
}

bool is_loopback(const std::string& host) {
  in_addr address{};  // a name that only begins like a number is no address
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "[::1]";
}

}  // namespace

Result<std::string> chat_request_body(const ChatRequest& request) {
  const std::string where = fmt::format("model {}: sampling", request.model.name);
  FIXIT_ASSIGN_OR_RETURN(const Json sampling, parse_json(request.model.sampling_json, where));
  if (!sampling.is_object()) return Status(ErrorCode::kInvalid, where + " is not an object");
  Json body = Json::object();
  body["model"] = request.model.model;
  body["messages"] = Json::array();
  for (const ChatMessage& message : request.messages)
    body["messages"].push_back({{"role", message.role}, {"content", message.content}});
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (!sampling.contains("max_completion_tokens")) body["max_tokens"] = request.model.max_tokens;
  for (const auto& [key, value] : sampling.items()) {
    if (key == "model" || key == "messages")
      return Status(ErrorCode::kInvalid,
                    fmt::format("{} may not set {}; take it out of the model's file", where, key));
    body[key] = value;
  }
  if (body["stream"] == false && !sampling.contains("stream_options")) body.erase("stream_options");
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Endpoint> chat_endpoint(const ModelConfig& model) {
  const auto invalid = [&model](std::string_view what) {
    return Status(ErrorCode::kInvalid,
                  fmt::format("model {}: base_url {}; correct it in the model's file", model.name, what));
  };
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, model.base_url.c_str(), 0) != CURLUE_OK)
    return invalid("is not a URL");
  const std::string scheme = url_part(url.get(), CURLUPART_SCHEME);
  const std::string host = url_part(url.get(), CURLUPART_HOST);
  const std::string port = url_part(url.get(), CURLUPART_PORT);
  if (scheme != "https" && scheme != "http") return invalid("must begin with https:// or http://");
  Endpoint endpoint;
  endpoint.loopback = is_loopback(host);
  if (scheme == "http" && !endpoint.loopback && !model.allow_http)
    return invalid("is plain http beyond this machine: use https, or set allow_http");
  endpoint.url = model.base_url;
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  endpoint.url += "/chat/completions";
  endpoint.shown = fmt::format("{}://{}{}{}", scheme, host, port.empty() ? "" : ":", port);
  return endpoint;
}

Result<std::string> api_key(const ModelConfig& model) {
  if (model.api_key_env.empty()) return std::string();
  const char* value = std::getenv(model.api_key_env.c_str());
  if (value == nullptr || *value == '\0')
    return Status(ErrorCode::kNotFound,
                  fmt::format("model {}: the environment variable {} holds no API key; set it where "
                              "the worker runs",
                              model.name, model.api_key_env));
  const std::string key = value;
  for (const char c : key)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return Status(ErrorCode::kInvalid,
                    fmt::format("model {}: the API key in {} holds white space or control characters",
                                model.name, model.api_key_env));
  return key;
}

}  // namespace fixit

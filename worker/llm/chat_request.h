// The request of an OpenAI-compatible chat completion.
#pragma once

#include <string>

#include "core/base/status.h"
#include "worker/llm/llm_client.h"

namespace fixit {

// The JSON body. The model's sampling parameters are merged in as given; they may not set `model` or
// `messages` (kInvalid). `max_tokens` gives way to a sampling `max_completion_tokens`.
Result<std::string> chat_request_body(const ChatRequest& request);

struct Endpoint {
  std::string url;
  std::string shown;  // scheme, host and port: what messages may name
  bool loopback = false;
};

// {base_url}/chat/completions. kInvalid for another scheme than https, or http beyond loopback without
// allow_http.
Result<Endpoint> chat_endpoint(const ModelConfig& model);

// The key out of the model's environment variable, "" where the model needs none. kNotFound naming the
// variable.
Result<std::string> api_key(const ModelConfig& model);

}  // namespace fixit

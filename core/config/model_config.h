// configs/models/NAME.yaml. Loading: config_files.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/codec.h"

namespace fixit {

enum class ModelProtocol { kReplay, kOpenAi };

template <>
struct EnumNames<ModelProtocol> {
  static constexpr std::pair<ModelProtocol, std::string_view> values[] = {{ModelProtocol::kReplay, "replay"},
                                                                          {ModelProtocol::kOpenAi, "openai"}};
};

struct ModelConfig {
  std::string name;  // the file's stem
  ModelProtocol protocol = ModelProtocol::kOpenAi;
  std::string base_url;  // openai: "https://host/v1"; http only to loopback unless allow_http
  bool allow_http = false;
  std::string model;        // the provider's name of it
  std::string api_key_env;  // name of the environment variable that holds the key; empty: no key is sent
  std::string sampling_json = "{}";  // passed through to the request as given (temperature, top_p, ...)
  int64_t max_tokens = 32768;        // completion limit per call
  int64_t context_window = 131072;   // tokens, prompt and completion together
  double usd_per_million_prompt = 0;
  double usd_per_million_cached = 0;
  double usd_per_million_completion = 0;
  int concurrency = 32;  // open requests of one worker
  double connect_timeout_s = 10;
  double first_byte_timeout_s = 600;
  double stall_timeout_s = 120;  // between chunks
  double total_timeout_s = 3600;
  int max_attempts = 6;          // per call, first try included
  std::string replies;           // replay: folder of recorded replies, relative to the model file
  double seconds_per_reply = 0;  // replay: simulated latency of a call
  FIXIT_FIELDS(name, protocol, base_url, allow_http, model, api_key_env, sampling_json, max_tokens,
               context_window, usd_per_million_prompt, usd_per_million_cached, usd_per_million_completion,
               concurrency, connect_timeout_s, first_byte_timeout_s, stall_timeout_s, total_timeout_s,
               max_attempts, replies, seconds_per_reply);
};

}  // namespace fixit

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <memory>

#include "core/config/config_files.h"
#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

constexpr double kDay = 86400;

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK || text == nullptr) return "";
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

// What is wrong with a base_url; empty if nothing is. Never repeats the URL: it may hold a password.
std::string url_fault(const std::string& text, bool allow_http) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  if (url == nullptr || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK)
    return "is not a URL; accepted: https://HOST[:PORT]/PATH";
  if (!url_part(url.get(), CURLUPART_USER).empty() || !url_part(url.get(), CURLUPART_PASSWORD).empty())
    return "holds a user name or password; put the key in an environment variable and name it in api_key_env";
  if (!url_part(url.get(), CURLUPART_QUERY).empty() || !url_part(url.get(), CURLUPART_FRAGMENT).empty())
    return "must end with the path, without `?` or `#`; a key belongs in the variable that api_key_env names";
  const std::string scheme = url_part(url.get(), CURLUPART_SCHEME);
  if (scheme == "https") return "";
  if (scheme != "http") return "accepted: https://..., or http://... to this machine";
  if (allow_http || is_loopback(url_part(url.get(), CURLUPART_HOST))) return "";
  return "would send prompts and the key in the clear; use https, or say allow_http: true";
}

// YAML's plain scalars as JSON has them; yaml-cpp's rules decide what is a number.
Json scalar_to_json(const YamlNode& node) {
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  const YAML::Node value(node.text);
  int64_t integer = 0;
  double real = 0;
  if (YAML::convert<int64_t>::decode(value, integer)) return integer;
  if (YAML::convert<double>::decode(value, real) && std::isfinite(real)) return real;
  return node.text;
}

Json to_json_value(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kScalar:
      return scalar_to_json(node);
    case YamlNode::Kind::kSequence: {
      Json list = Json::array();
      for (const auto& item : node.items) list.push_back(to_json_value(*item));
      return list;
    }
    case YamlNode::Kind::kMap: {
      Json map = Json::object();
      for (const auto& [key, value] : node.entries) map[key->text] = to_json_value(*value);
      return map;
    }
  }
  return nullptr;
}

void read_sampling(YamlMap& map, ModelConfig& model) {
  const YamlNode* node = map.value("sampling");
  if (node == nullptr) return;
  const YamlMap checked(map.faults(), *node, "sampling");  // duplicates, keys that are no names
  if (node->kind != YamlNode::Kind::kMap) return;
  if (node->expanded > 1000) return map.fault("sampling", "holds more than 1000 values");
  for (const char* key : {"model", "messages", "stream", "stream_options", "n", "max_tokens"})
    if (checked.has(key))
      map.faults().add(checked.line_of(key), checked.path_of(key),
                       "is set by Fixit; `max_tokens` is a key of the model's file");
  for (const char* key : {"api_key", "authorization", "Authorization", "headers"})
    if (checked.has(key))
      map.faults().add(checked.line_of(key), checked.path_of(key),
                       "is refused: keys come from the variable that api_key_env names");
  model.sampling_json = to_json_value(*node).dump();
}

void read_provider(YamlMap& map, ModelConfig& model) {
  map.flag("allow_http", model.allow_http);
  map.require("base_url", "https://HOST/v1");
  if (map.text("base_url", model.base_url, {.secret = true})) {
    if (const std::string wrong = url_fault(model.base_url, model.allow_http); !wrong.empty())
      map.fault("base_url", wrong);
    while (model.base_url.ends_with('/')) model.base_url.pop_back();
  }
  map.require("model", "the provider's name of the model");
  map.text("model", model.model);
  if (map.text("api_key_env", model.api_key_env, {.may_be_empty = true, .secret = true}) &&
      !model.api_key_env.empty() && !is_variable_name(model.api_key_env))
    map.fault("api_key_env",
              "is not the name of an environment variable (the value is not shown: it may be a key); "
              "accepted: upper-case letters, digits and underscores, as in OPENAI_API_KEY");
  map.number("connect_timeout_s", model.connect_timeout_s, {.least = 0, .most = kDay, .above = true});
  map.number("first_byte_timeout_s", model.first_byte_timeout_s, {.least = 0, .most = kDay, .above = true});
  map.number("stall_timeout_s", model.stall_timeout_s, {.least = 0, .most = kDay, .above = true});
  map.number("total_timeout_s", model.total_timeout_s, {.least = 0, .most = kDay, .above = true});
  map.integer("max_attempts", model.max_attempts, 1, 100);
  read_sampling(map, model);
}

void read_replay(YamlMap& map, ModelConfig& model) {
  map.require("replies", "a folder of recorded replies, relative to this file");
  map.text("replies", model.replies);
  map.number("seconds_per_reply", model.seconds_per_reply, {.least = 0, .most = 3600});
}

}  // namespace

Result<ModelConfig> load_model(const std::filesystem::path& file) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  ModelConfig model;
  model.name = file.stem().string();
  if (!is_plain_name(model.name))
    map.fault("", fmt::format("the file's name is not a model's; accepted: {}", kPlainNameRule));
  map.require("protocol", "replay or openai");
  const bool known = map.name("protocol", model.protocol);
  map.integer("max_tokens", model.max_tokens, 1, 100000000);
  map.integer("context_window", model.context_window, 1, 100000000);
  map.number("usd_per_million_prompt", model.usd_per_million_prompt, {.least = 0, .most = 1e6});
  map.number("usd_per_million_cached", model.usd_per_million_cached, {.least = 0, .most = 1e6});
  map.number("usd_per_million_completion", model.usd_per_million_completion, {.least = 0, .most = 1e6});
  map.integer("concurrency", model.concurrency, 1, 100000);
  if (model.max_tokens > model.context_window && !faults.any())
    map.fault("max_tokens", "is more than context_window, which holds prompt and completion together");
  if (!known) return faults.status();
  if (model.protocol == ModelProtocol::kReplay)
    read_replay(map, model);
  else
    read_provider(map, model);
  map.finish({{"api_key",
               "unknown key: a key never stands in a file; name its environment variable in api_key_env"}});
  FIXIT_RETURN_IF_ERROR(faults.status());
  return model;
}

}  // namespace fixit

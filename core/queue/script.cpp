#include "core/queue/script.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>

#include "fmt/format.h"

namespace fixit {
namespace {

// Calls sent before their answers are read: enough to keep Redis busy, little enough to hold in memory.
constexpr size_t kWindow = 16;

std::string sha1_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

Redis::Command command_of(const Script& script, ScriptCall& call) {
  Redis::Command command;
  command.reserve(3 + call.keys.size() + call.arguments.size());
  command.push_back("EVALSHA");
  command.push_back(script.sha1());
  command.push_back(std::to_string(call.keys.size()));
  std::move(call.keys.begin(), call.keys.end(), std::back_inserter(command));
  std::move(call.arguments.begin(), call.arguments.end(), std::back_inserter(command));
  return command;
}

bool is_unknown_script(const RedisReply& reply) {
  return reply.kind == RedisReply::Kind::kError && reply.text.starts_with("NOSCRIPT");
}

// A pipeline does not stop at an unknown script, so those calls that met one are sent again, in order.
Result<std::vector<RedisReply>> run_window(Redis& redis, const Script& script,
                                           const std::vector<Redis::Command>& commands) {
  FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> replies, redis.pipeline(commands));
  std::vector<Redis::Command> again;
  std::vector<size_t> places;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!is_unknown_script(replies[i])) continue;
    again.push_back(commands[i]);
    places.push_back(i);
  }
  if (!again.empty()) {
    FIXIT_RETURN_IF_ERROR(redis.call({"SCRIPT", "LOAD", std::string(script.text())}).status());
    FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> repeated, redis.pipeline(again));
    for (size_t i = 0; i < places.size(); ++i) replies[places[i]] = std::move(repeated[i]);
  }
  for (const RedisReply& reply : replies)
    if (reply.kind == RedisReply::Kind::kError) return redis_error(reply.text);
  return replies;
}

}  // namespace

Script::Script(std::string_view name) : text_(script_text(name)), sha1_(sha1_hex(text_)) {
  assert(!text_.empty());
}

Result<RedisReply> run_script(Redis& redis, const Script& script, ScriptCall call) {
  FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> replies,
                         run_window(redis, script, {command_of(script, call)}));
  return std::move(replies[0]);
}

Result<std::vector<RedisReply>> run_scripts(Redis& redis, const Script& script,
                                            std::vector<ScriptCall> calls) {
  std::vector<RedisReply> all;
  all.reserve(calls.size());
  for (size_t begin = 0; begin < calls.size(); begin += kWindow) {
    std::vector<Redis::Command> commands;
    for (size_t i = begin; i < std::min(begin + kWindow, calls.size()); ++i)
      commands.push_back(command_of(script, calls[i]));
    FIXIT_ASSIGN_OR_RETURN(std::vector<RedisReply> replies, run_window(redis, script, commands));
    std::move(replies.begin(), replies.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace fixit

// Lua scripts by their hash. Private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/queue/job_queue.h"
#include "core/queue/redis.h"

namespace fixit {

// The text of scripts/*/NAME.lua (lane scripts with scripts/prelude.lua before them); empty if there is none.
std::string_view script_text(std::string_view name);

class Script {
 public:
  // REQUIRES: scripts/*/NAME.lua exists.
  explicit Script(std::string_view name);
  std::string_view text() const { return text_; }
  const std::string& sha1() const { return sha1_; }

 private:
  std::string_view text_;
  std::string sha1_;
};

struct ScriptCall {
  std::vector<std::string> keys;
  std::vector<std::string> arguments;
};

// Runs a script by its hash and loads it first where the server does not know it (it was restarted).
Result<RedisReply> run_script(Redis& redis, const Script& script, ScriptCall call);
// The same for many calls, in pipelines; replies in order. Stops at the first call that fails, by its error;
// calls before it, and some after it, have run.
Result<std::vector<RedisReply>> run_scripts(Redis& redis, const Script& script,
                                            std::vector<ScriptCall> calls);

// Cuts what belongs to a lane into script calls: a script runs alone in Redis, so it must stay short.
inline constexpr size_t kBatchItems = 500;
inline constexpr size_t kBatchBytes = 1 << 20;

}  // namespace fixit

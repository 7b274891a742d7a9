#include <charconv>

#include "core/queue/keys.h"
#include "core/queue/redis.h"
#include "fmt/format.h"

namespace fixit {
namespace {

constexpr std::string_view kSchema = "1";

// The value of "name:value" in an INFO text; empty if absent.
std::string info_field(const std::string& info, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":";
  const size_t at = info.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

Status check_version(const std::string& info) {
  const std::string version = info_field(info, "redis_version");
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major >= 7) return {};
  return Status(ErrorCode::kUnsupported,
                fmt::format("redis: the server is version \"{}\"; version 7 or newer is needed", version));
}

Status check_eviction(const std::string& info) {
  const std::string policy = info_field(info, "maxmemory_policy");
  if (policy == "noeviction") return {};
  return Status(ErrorCode::kInvalid,
                fmt::format("redis: maxmemory-policy is \"{}\", under which Redis may drop jobs; set "
                            "`maxmemory-policy noeviction`",
                            policy));
}

Status check_persistence(Redis& redis, const std::string& info) {
  if (info_field(info, "aof_enabled") == "1") return {};
  // Managed servers may forbid CONFIG; then snapshots cannot be seen and count as absent.
  const auto save = redis.call({"CONFIG", "GET", "save"});
  if (save.ok() && save->items.size() == 2 && !save->items[1].text.empty()) return {};
  if (!save.ok() && save.status().code() == ErrorCode::kUnavailable) return save.status();
  return Status(
      ErrorCode::kInvalid,
      "redis: neither append-only file nor snapshots are on, so a restart would lose every job; set "
      "`appendonly yes`, or allow a volatile server explicitly");
}

Status check_schema(Redis& redis) {
  const std::string key(keys::kSchema);
  FIXIT_RETURN_IF_ERROR(redis.call({"SET", key, std::string(kSchema), "NX"}).status());
  FIXIT_ASSIGN_OR_RETURN(const RedisReply stored, redis.call({"GET", key}));
  if (stored.text == kSchema) return {};
  return Status(
      ErrorCode::kUnsupported,
      fmt::format("redis: its data has schema \"{}\" and this program (version {}) speaks {}; use the "
                  "version that wrote it, or another database number",
                  stored.text, FIXIT_VERSION, kSchema));
}

}  // namespace

Status check_redis(Redis& redis, bool allow_volatile) {
  FIXIT_ASSIGN_OR_RETURN(const RedisReply info, redis.call({"INFO"}));
  FIXIT_RETURN_IF_ERROR(check_version(info.text));
  FIXIT_RETURN_IF_ERROR(check_eviction(info.text));
  if (!allow_volatile) FIXIT_RETURN_IF_ERROR(check_persistence(redis, info.text));
  return check_schema(redis);
}

}  // namespace fixit

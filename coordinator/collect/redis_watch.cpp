#include "coordinator/collect/redis_watch.h"

#include <fmt/format.h>

#include <cstdlib>

namespace fixit {
namespace {

std::string line_value(const std::string& text, const std::string& key) {
  const size_t begin = text.find(key + ":");
  if (begin == std::string::npos) return {};
  const size_t value = begin + key.size() + 1;
  return text.substr(value, text.find_first_of("\r\n", value) - value);
}

}  // namespace

RedisWatch::RedisWatch(Redis& redis, const Clock& clock, Limits limits)
    : redis_(redis), clock_(clock), limits_(limits) {}

Result<RedisWatch::Seen> RedisWatch::read() {
  Seen seen;
  FIXIT_ASSIGN_OR_RETURN(const RedisReply info, redis_.call({"INFO", "server"}));
  seen.run_id = line_value(info.text, "run_id");
  FIXIT_ASSIGN_OR_RETURN(const RedisReply time, redis_.call({"TIME"}));
  seen.steady_ms = clock_.steady_ms();
  if (time.items.size() != 2) return Status(ErrorCode::kInternal, "Redis answered TIME with something else");
  seen.redis_ms = std::strtoll(time.items[0].text.c_str(), nullptr, 10) * 1000 +
                  std::strtoll(time.items[1].text.c_str(), nullptr, 10) / 1000;
  return seen;
}

Result<std::optional<std::string>> RedisWatch::look() {
  const auto seen = read();
  if (!seen.ok()) {
    failed_ = true;
    return seen.status();
  }
  const std::optional<Seen> before = last_;
  last_ = *seen;
  const bool failed = failed_;
  failed_ = false;
  if (!before) return std::optional<std::string>("this coordinator begins to lead");
  if (failed) return std::optional<std::string>("Redis could not be reached");
  if (before->run_id != seen->run_id) return std::optional<std::string>("Redis was restarted");
  const int64_t waited_ms = seen->steady_ms - before->steady_ms;
  if (waited_ms > limits_.silence_ms)
    return std::optional<std::string>(fmt::format("Redis was not looked at for {} ms", waited_ms));
  const int64_t drift_ms = (seen->redis_ms - before->redis_ms) - waited_ms;
  if (std::llabs(drift_ms) > limits_.clock_drift_ms)
    return std::optional<std::string>(fmt::format("Redis's clock jumped by {} ms", drift_ms));
  return std::optional<std::string>();
}

}  // namespace fixit

#include <charconv>
#include <cstdlib>

#include "core/queue/redis.h"
#include "fmt/format.h"

namespace fixit {
namespace {

constexpr std::string_view kTcp = "redis://";
constexpr std::string_view kUnix = "unix://";

Status invalid(const std::string& url, std::string_view why) {
  return Status(ErrorCode::kInvalid,
                fmt::format("redis address \"{}\": {}; write redis://[user@]host:port[/database] or "
                            "unix:///path",
                            url, why));
}

bool parse_number(std::string_view text, int limit, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= limit;
}

Status parse_tcp(const std::string& url, RedisAddress& address) {
  std::string_view rest = std::string_view(url).substr(kTcp.size());
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    if (!database.empty() && !parse_number(database, 1 << 20, address.database))
      return invalid(url, "the database is not a number");
    rest = rest.substr(0, slash);
  }
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    address.user = rest.substr(0, at);
    rest = rest.substr(at + 1);
  }
  // [::1]:6379 keeps the colons of an IPv6 address inside its brackets.
  size_t colon = rest.rfind(':');
  if (!rest.empty() && rest.front() == '[') {
    const size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return invalid(url, "a [ without its ]");
    address.host = rest.substr(1, bracket - 1);
    colon = rest.find(':', bracket);
  } else {
    address.host = rest.substr(0, colon);
  }
  if (colon != std::string_view::npos && !parse_number(rest.substr(colon + 1), 65535, address.port))
    return invalid(url, "the port is not a number up to 65535");
  if (address.host.empty()) return invalid(url, "no host");
  return {};
}

}  // namespace

Result<RedisAddress> parse_redis_url(const std::string& url, const std::string& password_env) {
  RedisAddress address;
  if (url.starts_with(kTcp)) {
    // Refused without echoing it: the text would carry the secret into logs.
    const size_t at = url.rfind('@');
    if (at != std::string::npos && url.find(':', kTcp.size()) < at)
      return Status(ErrorCode::kInvalid,
                    "redis address: it holds a password; put the password into an environment variable and "
                    "name that variable instead");
    FIXIT_RETURN_IF_ERROR(parse_tcp(url, address));
  } else if (url.starts_with(kUnix)) {
    address.unix_socket = url.substr(kUnix.size());
    if (address.unix_socket.empty() || address.unix_socket.front() != '/')
      return invalid(url, "the socket's path is not absolute");
  } else if (url.starts_with("rediss://")) {
    return Status(
        ErrorCode::kUnsupported,
        fmt::format("redis address \"{}\": TLS is not supported; run a TLS tunnel (stunnel, ssh -L) "
                    "beside this program and give its local port as redis://",
                    url));
  } else {
    return invalid(url, "unknown scheme");
  }
  if (!password_env.empty()) {
    const char* password = std::getenv(password_env.c_str());
    if (password == nullptr)
      return Status(ErrorCode::kInvalid,
                    fmt::format("redis: the environment variable {} that should hold the password is not set",
                                password_env));
    address.password = password;
  }
  return address;
}

}  // namespace fixit

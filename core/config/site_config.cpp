#include "core/config/site_config.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// $NAME, else `below_home` in the user's home folder; empty where neither is known. Relative values do not
// count, as the XDG base directory specification says.
fs::path user_folder(const char* name, const char* below_home) {
  if (const fs::path given = variable(name); given.is_absolute()) return given;
  const fs::path home = variable("HOME");
  return home.is_absolute() ? home / below_home : fs::path();
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

// What is wrong with a Redis address; empty if nothing is. Never repeats it: it may hold a password.
std::string redis_fault(std::string_view address) {
  if (address == "embedded") return "";
  constexpr std::string_view kForm = "accepted: embedded, redis://[USER@]HOST:PORT[/DB], or unix:///PATH";
  if (address.starts_with("unix:///")) return {};
  if (!address.starts_with("redis://")) return std::string(kForm);
  address.remove_prefix(8);
  if (const size_t at = address.rfind('@'); at != std::string_view::npos) {
    if (address.substr(0, at).find(':') != std::string_view::npos)
      return "holds a password; put it in an environment variable and name it in redis_password_env";
    address.remove_prefix(at + 1);
  }
  if (const size_t slash = address.find('/'); slash != std::string_view::npos) {
    const std::string_view database = address.substr(slash + 1);
    if (database.empty() || database.size() > 3 ||
        database.find_first_not_of("0123456789") != std::string_view::npos)
      return std::string(kForm);
    address = address.substr(0, slash);
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !is_port(address.substr(colon + 1)))
    return std::string(kForm);
  return "";
}

std::string listen_fault(std::string_view address) {
  constexpr std::string_view kForm = "accepted: tcp://127.0.0.1:PORT, or tcp://127.0.0.1:* for any free port";
  constexpr std::string_view kLoopback = "tcp://127.0.0.1:";
  if (!address.starts_with("tcp://")) return std::string(kForm);
  if (!address.starts_with(kLoopback))
    return "would listen beyond this machine, which this version refuses; " + std::string(kForm);
  const std::string_view port = address.substr(kLoopback.size());
  return port == "*" || is_port(port) ? "" : std::string(kForm);
}

Status read_site_file(const fs::path& file, SiteConfig& site) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  if (map.text("redis", site.redis, {.secret = true}))
    if (const std::string wrong = redis_fault(site.redis); !wrong.empty()) map.fault("redis", wrong);
  if (map.text("redis_password_env", site.redis_password_env, {.secret = true}) &&
      !is_variable_name(site.redis_password_env))
    map.fault("redis_password_env",
              "is not the name of an environment variable (the value is not shown: it may be a "
              "password); accepted: upper-case letters, digits and underscores");
  std::string data;
  if (map.text("data", data))
    site.data = fs::path(data).is_absolute() ? fs::path(data) : file.parent_path() / data;
  if (map.text("listen", site.listen))
    if (const std::string wrong = listen_fault(site.listen); !wrong.empty()) map.fault("listen", wrong);
  map.number("lease_s", site.lease_s, {.least = 1, .most = 3600});
  map.number("profiler_silence_s", site.profiler_silence_s, {.least = 1, .most = 3600});
  map.integer("max_profile_queue", site.max_profile_queue, 1, 1000000);
  map.flag("allow_volatile_redis", site.allow_volatile_redis);
  map.finish({{"redis_password",
               "unknown key: a password never stands in a file; name its environment variable in "
               "redis_password_env"}});
  return faults.status();
}

}  // namespace

Result<SiteConfig> load_site_config(const fs::path& given) {
  SiteConfig site;
  const fs::path data = user_folder("XDG_DATA_HOME", ".local/share");
  if (!data.empty()) site.data = data / "fixit";
  fs::path file = given;
  if (file.empty()) file = variable("FIXIT_CONFIG");
  std::error_code error;
  if (file.empty()) {
    // The default place may be empty; a file that was named may not.
    const fs::path folder = user_folder("XDG_CONFIG_HOME", ".config");
    if (!folder.empty() && fs::exists(folder / "fixit" / "fixit.yaml", error))
      file = folder / "fixit" / "fixit.yaml";
  }
  if (!file.empty()) FIXIT_RETURN_IF_ERROR(read_site_file(file, site));
  if (const std::string redis = variable("FIXIT_REDIS"); !redis.empty()) {
    if (const std::string wrong = redis_fault(redis); !wrong.empty())
      return Status(ErrorCode::kInvalid, "environment variable FIXIT_REDIS: " + wrong);
    site.redis = redis;
  }
  if (const std::string folder = variable("FIXIT_DATA"); !folder.empty()) site.data = folder;
  if (site.data.empty())
    return Status(ErrorCode::kInvalid,
                  "no data folder: set FIXIT_DATA, or `data` in fixit.yaml (HOME is not set)");
  site.data = fs::absolute(site.data, error);
  return site;
}

}  // namespace fixit

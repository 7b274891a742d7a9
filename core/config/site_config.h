// fixit.yaml: where things run. The site's business, never part of a sweep.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/status.h"

namespace fixit {

struct SiteConfig {
  // "embedded", redis://[user@]host:port[/db] or unix:///path; a password only by redis_password_env.
  std::string redis = "embedded";
  std::string redis_password_env;
  std::filesystem::path data;  // holds store/, journal/, datasets/, redis/ (embedded), run/ (sockets, logs)
  std::string listen = "tcp://127.0.0.1:*";  // coordinator: beyond loopback is refused in this version
  double lease_s = 15;                       // of a job; heartbeats go out three times as often
  double profiler_silence_s = 10;            // after which a profiler counts as gone
  int max_profile_queue = 256;               // per GPU kind, in the broker
  bool allow_volatile_redis = false;         // accept a Redis that does not persist

  std::filesystem::path store() const { return data / "store"; }
  std::filesystem::path journal() const { return data / "journal"; }
  std::filesystem::path datasets() const { return data / "datasets"; }
  std::filesystem::path redis_folder() const { return data / "redis"; }
  std::filesystem::path run() const { return data / "run"; }
};

// From, later wins: defaults; `file` if given, else $FIXIT_CONFIG, else fixit.yaml in the user's
// configuration folder ($XDG_CONFIG_HOME or ~/.config, /fixit/); FIXIT_REDIS, FIXIT_DATA. Default data
// folder: $XDG_DATA_HOME or ~/.local/share, /fixit. Errors carry file:line.
Result<SiteConfig> load_site_config(const std::filesystem::path& file);

}  // namespace fixit

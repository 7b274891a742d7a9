// What the commands of `fixit` share: site options, output, connections, interruption.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/config/site_config.h"
#include "core/queue/redis.h"
#include "core/wire/broker_client.h"

namespace fixit {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Flags that win over fixit.yaml and the environment.
struct SiteFlags {
  std::string file;   // --site
  std::string redis;  // --redis
  std::string data;   // --data
  void add_to(CLI::App& command);
  Result<SiteConfig> load() const;
};

// Messages for people go to stderr; with --json one document goes to stdout.
int report_failure(const Status& status, bool json);
void print_json(const Json& document);

// True once SIGINT or SIGTERM came: commands then leave in order, so that what they started is stopped.
bool interrupted();
void watch_interruptions();

// A connection to the coordinator that leads, found through Redis.
struct CoordinatorLink {
  std::unique_ptr<Redis> redis;
  std::unique_ptr<BrokerClient> client;
  static Result<CoordinatorLink> open(const SiteConfig& site);
};

// Waits for an answer that may take any time; `check` runs every half second and ends the wait with its error, as
// an interruption does.
Result<Message> wait_for_answer(BrokerClient& client, MessageType type, std::string body, int64_t timeout_ms,
                                const std::function<Status()>& check);

// One file per command adds it to the application. Each sets `exit_code` when it has run.
void add_launch_command(CLI::App& app, int& exit_code);
void add_status_command(CLI::App& app, int& exit_code);
void add_eval_command(CLI::App& app, int& exit_code);
void add_program_commands(CLI::App& app, int& exit_code);

}  // namespace fixit

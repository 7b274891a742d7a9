// fixit-coordinator: launches, brokers profile requests, collects, and turns failures into datasets.
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "coordinator/service/coordinator_service.h"
#include "core/base/hash.h"
#include "core/config/site_config.h"
#include "core/queue/embedded_redis.h"
#include "core/queue/redis.h"

namespace fixit {
namespace {

struct Arguments {
  std::string site;
  std::string listen;
  std::string id;
  std::string log_level = "info";
};

int report(const Status& status) {
  spdlog::error("fixit-coordinator: {}", status.to_string());
  return 1;
}

std::string default_id() {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}-{}", host, getpid(), random_hex(3));
}

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Waits for SIGTERM or SIGINT, which every thread has blocked, or for the service's own end.
void wait_for_end(const CoordinatorService& service) {
  const sigset_t signals = stop_signals();
  const timespec look = {0, 200'000'000};
  while (!service.ended()) {
    const int signal = sigtimedwait(&signals, nullptr, &look);
    if (signal <= 0) continue;
    spdlog::info("fixit-coordinator: signal {}: stopping", signal);
    return;
  }
}

int run(const Arguments& arguments) {
  auto site = load_site_config(arguments.site);
  if (!site.ok()) return report(site.status());
  if (!arguments.listen.empty()) site->listen = arguments.listen;

  RedisAddress address;
  std::unique_ptr<EmbeddedRedis> embedded;  // started before signals are blocked: a child inherits the mask
  if (site->redis == "embedded") {
    auto started = EmbeddedRedis::start(site->redis_folder());
    if (!started.ok()) return report(started.status());
    embedded = *std::move(started);
    address = embedded->address();
  } else {
    auto parsed = parse_redis_url(site->redis, site->redis_password_env);
    if (!parsed.ok()) return report(parsed.status());
    address = *parsed;
  }
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  {
    auto redis = Redis::connect(address);
    if (!redis.ok()) return report(redis.status());
    const Status fit = check_redis(**redis, site->allow_volatile_redis);
    if (!fit.ok()) return report(fit);
  }
  CoordinatorService::Options options;
  options.site = *site;
  options.redis = address;
  options.id = arguments.id.empty() ? default_id() : arguments.id;
  auto service = CoordinatorService::start(std::move(options));
  if (!service.ok()) return report(service.status());
  wait_for_end(**service);
  (*service)->stop();
  const Status status = (*service)->status();
  return status.ok() ? 0 : report(status);
}

}  // namespace
}  // namespace fixit

int main(int argc, char** argv) {
  fixit::Arguments arguments;
  CLI::App app{
      "Fixit's coordinator: takes launches, brokers profile requests between workers and profilers, "
      "collects\n"
      "finished turns into the journal, and turns a sweep's failures into dataset rows. Several may run; "
      "one\n"
      "leads, the others stand by."};
  app.set_version_flag("--version", "fixit-coordinator " FIXIT_VERSION);
  app.add_option("--site", arguments.site,
                 "Site file: where Redis and the data folder are\n"
                 "(default: $FIXIT_CONFIG, else fixit.yaml in ~/.config/fixit/)")
      ->type_name("FILE");
  app.add_option("--listen", arguments.listen,
                 "ZeroMQ endpoint for workers, profilers and the command line; * takes a free port\n"
                 "(default: `listen` of the site file, else tcp://127.0.0.1:*)")
      ->type_name("ENDPOINT");
  app.add_option("--id", arguments.id,
                 "Name of this coordinator, unique among them (default: HOST-PID-RANDOM)")
      ->type_name("NAME");
  app.add_option("--log-level", arguments.log_level, "Messages on stderr: trace, debug, info, warn, error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("fixit-coordinator"));
  spdlog::set_level(spdlog::level::from_str(arguments.log_level));
  return fixit::run(arguments);
}

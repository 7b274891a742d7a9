// fixit-profiler: serves one GPU kind to the leading coordinator.
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>

#include "core/base/hash.h"
#include "core/config/config_files.h"
#include "core/config/site_config.h"
#include "core/queue/redis.h"
#include "core/queue/registry.h"
#include "profiler/service/profiler_service.h"
#include "profiler/target/cpu/cpu_evaluator.h"

namespace fixit {
namespace {

std::atomic<bool> stop_asked{false};
void ask_to_stop(int) {
  stop_asked = true;
}

struct Arguments {
  std::string gpu = "cpu";
  std::string site;
  std::string coordinator;
  std::string runner;
  std::string log_level = "info";
  std::optional<uint64_t> seed;
  bool self_test = false;
  bool json = false;
};

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown-host";
}

Result<GpuConfig> find_gpu(const std::string& name) {
  const std::filesystem::path path(name);
  if (path.extension() == ".yaml" || path.has_parent_path()) return load_gpu(path);
  FIXIT_ASSIGN_OR_RETURN(const auto found, ConfigSearch(std::filesystem::current_path()).gpu(name));
  return load_gpu(found);
}

Result<RedisAddress> redis_address(const SiteConfig& site) {
  if (site.redis != "embedded") return parse_redis_url(site.redis, site.redis_password_env);
  // The coordinator's private server: joined, never started here.
  RedisAddress address;
  address.unix_socket = (site.redis_folder() / "redis.sock").string();
  return address;
}

// The leading coordinator's endpoint, asked for again at every connection.
class CoordinatorLookup {
 public:
  explicit CoordinatorLookup(RedisAddress address) : address_(std::move(address)) {}
  Result<std::string> endpoint() {
    if (!redis_) {
      FIXIT_ASSIGN_OR_RETURN(redis_, Redis::connect(address_, 2000));
    }
    FIXIT_ASSIGN_OR_RETURN(const LeaderInfo leader, Registry(*redis_).leader());
    return leader.endpoint;
  }

 private:
  RedisAddress address_;
  std::unique_ptr<Redis> redis_;
};

Result<std::function<Result<std::string>()>> make_endpoint(const Arguments& arguments) {
  if (!arguments.coordinator.empty())
    return std::function([endpoint = arguments.coordinator]() -> Result<std::string> { return endpoint; });
  FIXIT_ASSIGN_OR_RETURN(const SiteConfig site, load_site_config(arguments.site));
  FIXIT_ASSIGN_OR_RETURN(RedisAddress address, redis_address(site));
  auto lookup = std::make_shared<CoordinatorLookup>(std::move(address));
  return std::function([lookup]() -> Result<std::string> { return lookup->endpoint(); });
}

void print_capability(const ProfilerCapability& capability, bool json) {
  if (json) {
    fmt::print("{}\n", to_json(capability).dump(2));
    return;
  }
  fmt::print(
      "gpu           {}\ndevice        {}\nisolation     {}\nsandbox       {}\ninstructions  {}\nevaluator   "
      "  {}\n",
      capability.gpu, capability.device, capability.isolation, capability.sandbox,
      capability.proves_instructions ? "proven by execution" : "cannot be proven here", capability.evaluator);
}

Status serve(const Arguments& arguments) {
  FIXIT_ASSIGN_OR_RETURN(const GpuConfig gpu, find_gpu(arguments.gpu));
  const std::string host = host_name();
  const std::string id = fmt::format("{}-{}-{}", host, getpid(), random_hex(4));
  FIXIT_ASSIGN_OR_RETURN(const auto evaluator,
                         make_cpu_evaluator(gpu, id, {arguments.runner, arguments.seed}));
  if (arguments.self_test) {
    print_capability(evaluator->capability(), arguments.json);
    return {};
  }
  ProfilerServiceOptions options;
  FIXIT_ASSIGN_OR_RETURN(options.endpoint, make_endpoint(arguments));
  options.id = id;
  options.host = host;
  options.drain_ms = static_cast<int64_t>(gpu.evaluation_deadline_s * 1000);
  spdlog::info("profiler {} serves {} ({}), sandbox {}", id, gpu.name, evaluator->capability().device,
               evaluator->capability().sandbox);
  serve_profiler(*evaluator, options, stop_asked);
  spdlog::info("profiler {} has left", id);
  return {};
}

void define_options(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", FIXIT_VERSION);
  app.add_option("--gpu", arguments.gpu,
                 "GPU kind to serve: a name of configs/gpus/NAME.yaml, or the path of such a file")
      ->capture_default_str();
  app.add_option(
      "--site", arguments.site,
      "fixit.yaml of this site (default: $FIXIT_CONFIG, then the user's configuration folder); $FIXIT_REDIS "
      "overrides its redis");
  app.add_option("--coordinator", arguments.coordinator,
                 "broker's endpoint, tcp://HOST:PORT (default: the leading coordinator's, asked of Redis)");
  app.add_option("--runner", arguments.runner, "fixit-cpu-runner program (default: beside this program)")
      ->check(CLI::ExistingFile);
  app.add_option(
      "--seed", arguments.seed,
      "seed of all random inputs, 0 to 2^64-1 (default: a random one for each evaluation; verdicts say it)");
  app.add_option("--log-level", arguments.log_level, "what is logged to stderr")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.add_flag("--self-test", arguments.self_test,
               "print what this profiler can prove and exit; 1 if it cannot serve");
  app.add_flag("--json", arguments.json, "with --self-test: one JSON document on stdout");
}

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = ask_to_stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace
}  // namespace fixit

int main(int argc, char** argv) {
  CLI::App app{"Evaluates compiled kernels for a coordinator: checks, correctness, latency, instructions."};
  fixit::Arguments arguments;
  fixit::define_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("profiler"));
  spdlog::set_level(spdlog::level::from_str(arguments.log_level));
  fixit::stop_on_signals();
  const fixit::Status status = fixit::serve(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "fixit-profiler: {}\n", status.to_string());
  return 1;
}

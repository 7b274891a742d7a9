// fixit-worker: leases jobs and drives their trajectories.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "core/config/config_files.h"
#include "core/queue/embedded_redis.h"
#include "core/wire/remote_store.h"
#include "worker/engine/engine.h"

namespace fixit {
namespace {

constexpr int64_t kStoreTimeoutMs = 10'000;
constexpr size_t kStoreCacheBytes = 64u << 20;

struct Arguments {
  std::string site;
  int trajectories = 64;
  int compile_jobs = 0;
  std::vector<std::string> models;
  std::vector<std::string> gpus = {"cpu*"};
  std::string spool;
  std::string log_level = "info";
};

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

int complain(const Status& status) {
  spdlog::error("{}", status.to_string());
  return 1;
}

// Connections and server; members are destroyed in reverse.
struct RedisLinks {
  std::unique_ptr<EmbeddedRedis> server;
  std::unique_ptr<Redis> work, beat, blocking, leader;
};

Result<RedisLinks> connect(const SiteConfig& site) {
  RedisLinks links;
  RedisAddress address;
  if (site.redis == "embedded") {
    FIXIT_ASSIGN_OR_RETURN(links.server, EmbeddedRedis::start(site.redis_folder()));
    address = links.server->address();
  } else {
    FIXIT_ASSIGN_OR_RETURN(address, parse_redis_url(site.redis, site.redis_password_env));
  }
  for (auto* link : {&links.work, &links.beat, &links.blocking, &links.leader}) {
    FIXIT_ASSIGN_OR_RETURN(*link, Redis::connect(address));
  }
  FIXIT_RETURN_IF_ERROR(check_redis(*links.work, site.allow_volatile_redis));
  return links;
}

std::unique_ptr<BrokerClient> connect_broker(Redis& redis, const WorkerInfo& worker) {
  BrokerClient::Options options;
  options.endpoint = [&redis]() -> Result<std::string> {
    FIXIT_ASSIGN_OR_RETURN(const LeaderInfo leader, Registry(redis).leader());
    // A new leader leads before its broker listens.
    if (leader.endpoint.empty())
      return Status(ErrorCode::kUnavailable, "the coordinator's broker is not up yet");
    return leader.endpoint;
  };
  options.hello.role = PeerRole::kWorker;
  options.hello.id = worker.id;
  options.hello.host = worker.host;
  options.hello.pid = worker.pid;
  options.hello.version = FIXIT_VERSION;
  options.on_connected = [](const Welcome& welcome, bool) {
    spdlog::info("connected to coordinator {}, epoch {}", welcome.coordinator, welcome.epoch);
  };
  return BrokerClient::start(std::move(options));
}

void ask_profile(BrokerClient& broker, const ProfileRequest& request,
                 std::function<void(Result<Verdict>)> answer) {
  const int64_t timeout_ms = std::max<int64_t>(1, request.deadline_ms - Clock::system().unix_ms());
  broker.request(MessageType::kProfile, encode(request), {}, timeout_ms,
                 [answer = std::move(answer)](Result<Message> message) {
                   if (!message.ok()) return answer(message.status());
                   auto reply = decode<VerdictReply>(message->body);
                   if (!reply.ok()) return answer(reply.status());
                   answer(std::move(reply->verdict));
                 });
}

int work(const Arguments& arguments, const sigset_t& leave) {
  const auto site = load_site_config(arguments.site);
  if (!site.ok()) return complain(site.status());
  const auto links = connect(*site);
  if (!links.ok()) return complain(links.status());

  WorkerInfo worker;
  worker.host = host_name();
  worker.pid = getpid();
  worker.id = worker.host + "-" + std::to_string(worker.pid) + "-" + random_hex(3);
  const auto broker = connect_broker(*links->leader, worker);
  const auto store = make_remote_store(*broker, kStoreTimeoutMs, kStoreCacheBytes);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto compiler = Compiler::start(*store, arguments.compile_jobs > 0 ? arguments.compile_jobs : cores);
  if (!compiler.ok()) return complain(compiler.status());
  const auto llm = LlmClient::start();

  Engine::Parts parts;
  parts.redis = links->work.get();
  parts.beat = links->beat.get();
  parts.blocking = links->blocking.get();
  parts.store = store.get();
  parts.llm = llm.get();
  parts.compiler = compiler->get();
  parts.profile = [&broker](const ProfileRequest& request, std::function<void(Result<Verdict>)> answer) {
    ask_profile(*broker, request, std::move(answer));
  };
  Engine::Options options;
  options.worker = worker;
  options.spool = arguments.spool.empty() ? site->run() / "spool" : std::filesystem::path(arguments.spool);
  options.trajectories = arguments.trajectories;
  options.lease = std::chrono::milliseconds(static_cast<int64_t>(site->lease_s * 1000));
  options.models = arguments.models;
  options.gpus = arguments.gpus;
  const auto engine = Engine::start(std::move(parts), std::move(options));
  if (!engine.ok()) return complain(engine.status());
  spdlog::info("worker {} serves up to {} trajectories, compiles with {}", worker.id, arguments.trajectories,
               (*compiler)->toolchain());

  int signal = 0;
  sigwait(&leave, &signal);
  spdlog::info("signal {}: giving jobs back", signal);
  (*engine)->stop();
  return 0;
}

}  // namespace
}  // namespace fixit

int main(int argc, char** argv) {
  CLI::App app{
      "Leases jobs from Redis and drives their trajectories: model calls, compilation, profile requests."};
  fixit::Arguments arguments;
  app.add_option("--site", arguments.site,
                 "Site file; default: $FIXIT_CONFIG, else fixit.yaml in the user's configuration folder");
  app.add_option("--trajectories", arguments.trajectories, "Jobs held at once")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--compile-jobs", arguments.compile_jobs, "Compilers at once; 0: one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--models", arguments.models, "Patterns (* and ?) of the models to serve; default: all");
  app.add_option("--gpus", arguments.gpus,
                 "Patterns of the GPU kinds to serve; jobs without a GPU always are")
      ->capture_default_str();
  app.add_option("--spool", arguments.spool,
                 "Folder for replies on their way to the store; default: DATA/run/spool");
  app.add_option("--log-level", arguments.log_level, "Messages on stderr")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.set_version_flag("--version", "fixit-worker " FIXIT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("fixit-worker"));
  spdlog::set_level(spdlog::level::from_str(arguments.log_level));

  // Blocked before the first thread starts, so that only sigwait() takes them.
  sigset_t leave;
  sigemptyset(&leave);
  sigaddset(&leave, SIGTERM);
  sigaddset(&leave, SIGINT);
  pthread_sigmask(SIG_BLOCK, &leave, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return fixit::work(arguments, leave);
}

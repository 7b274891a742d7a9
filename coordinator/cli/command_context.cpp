#include "coordinator/cli/command_context.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>

#include "core/base/hash.h"
#include "core/queue/embedded_redis.h"
#include "core/queue/registry.h"

namespace fixit {
namespace {

volatile sig_atomic_t g_interrupted = 0;

void note_interruption(int) { g_interrupted = 1; }

}  // namespace

void SiteFlags::add_to(CLI::App& command) {
  command.add_option("--site", file, "Site file (default: $FIXIT_CONFIG, else ~/.config/fixit/fixit.yaml if it exists)");
  command.add_option("--redis", redis, "redis://[user@]host:port[/db], unix:///path or embedded (default: the site's)");
  command.add_option("--data", data, "Data folder: store, journal, datasets (default: the site's)");
}

Result<SiteConfig> SiteFlags::load() const {
  FIXIT_ASSIGN_OR_RETURN(SiteConfig site, load_site_config(file));
  if (!redis.empty()) site.redis = redis;
  if (!data.empty()) site.data = data;
  std::error_code error;
  site.data = std::filesystem::absolute(site.data, error);
  return site;
}

int report_failure(const Status& status, bool json) {
  if (json)
    print_json(Json{{"error", {{"code", std::string(name_of(status.code()))}, {"message", status.message()}}}});
  std::fprintf(stderr, "fixit: %s\n", status.message().c_str());
  return kExitFailure;
}

void print_json(const Json& document) {
  std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

bool interrupted() { return g_interrupted != 0; }

void watch_interruptions() {
  struct sigaction action {};
  action.sa_handler = note_interruption;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Result<CoordinatorLink> CoordinatorLink::open(const SiteConfig& site) {
  if (site.redis == "embedded")
    return Status(ErrorCode::kUnavailable,
                  "no running system is named: set `redis:` in fixit.yaml, FIXIT_REDIS or --redis, or use --local");
  CoordinatorLink link;
  FIXIT_ASSIGN_OR_RETURN(const RedisAddress address, parse_redis_url(site.redis, site.redis_password_env));
  FIXIT_ASSIGN_OR_RETURN(link.redis, Redis::connect(address));
  FIXIT_RETURN_IF_ERROR(check_redis(*link.redis, true));
  const auto leader = Registry(*link.redis).leader();
  if (!leader.ok()) return leader.status().with_context("no coordinator leads on " + site.redis);

  BrokerClient::Options options;
  options.endpoint = [redis = link.redis.get()]() -> Result<std::string> {
    FIXIT_ASSIGN_OR_RETURN(const LeaderInfo info, Registry(*redis).leader());
    return info.endpoint;
  };
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  options.hello.role = PeerRole::kClient;
  options.hello.host = host;
  options.hello.pid = getpid();
  options.hello.id = fmt::format("{}-{}-{}", host, getpid(), random_hex(4));
  options.hello.version = FIXIT_VERSION;
  link.client = BrokerClient::start(std::move(options));
  return link;
}

Result<Message> wait_for_answer(BrokerClient& client, MessageType type, std::string body, int64_t timeout_ms,
                                const std::function<Status()>& check) {
  // Shared with the callback, which may come after this function has left.
  auto answer = std::make_shared<std::promise<Result<Message>>>();
  auto pending = answer->get_future();
  client.request(type, std::move(body), {}, timeout_ms,
                 [answer](Result<Message> message) { answer->set_value(std::move(message)); });
  while (pending.wait_for(std::chrono::milliseconds(500)) != std::future_status::ready) {
    if (interrupted()) return Status(ErrorCode::kCancelled, "interrupted");
    FIXIT_RETURN_IF_ERROR(check());
  }
  return pending.get();
}

}  // namespace fixit

#include "coordinator/local/local_stack.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/queue/registry.h"

namespace fixit {
namespace {

constexpr int kGraceMs = 10000;
constexpr std::chrono::milliseconds kPollInterval{50};

std::string log_tail(const std::filesystem::path& log) {
  const auto text = read_file(log);
  if (!text.ok()) return "";
  constexpr size_t kTailBytes = 2000;
  return text->size() > kTailBytes ? "...\n" + text->substr(text->size() - kTailBytes) : *text;
}

}  // namespace

Result<std::unique_ptr<LocalStack>> LocalStack::start(Options options) {
  if (options.site.redis != "embedded")
    return Status(ErrorCode::kInvalid,
                  fmt::format("a local run starts its own redis-server, but the site names {}; use `redis: "
                              "embedded`, or start coordinator, worker and profiler yourself",
                              options.site.redis));
  std::unique_ptr<LocalStack> stack(new LocalStack(std::move(options)));
  SiteConfig& site = stack->options_.site;
  std::error_code error;
  std::filesystem::create_directories(site.run(), error);
  if (!error) std::filesystem::create_directories(site.redis_folder(), error);
  if (error)
    return Status(ErrorCode::kDenied, fmt::format("cannot make {}: {}", site.run().string(), error.message()));

  FIXIT_ASSIGN_OR_RETURN(stack->redis_, EmbeddedRedis::start(site.redis_folder()));
  site.redis = stack->redis_->url();
  if (stack->redis_->pid() == 0)
    return Status(ErrorCode::kConflict,
                  fmt::format("something already runs on {}: wait until it ends, join it with FIXIT_REDIS={}, or "
                              "choose another data folder",
                              site.data.string(), site.redis));
  FIXIT_RETURN_IF_ERROR(stack->restart_coordinator());
  FIXIT_RETURN_IF_ERROR(stack->restart_profiler());
  FIXIT_RETURN_IF_ERROR(stack->restart_worker());
  FIXIT_RETURN_IF_ERROR(stack->wait_until_ready());
  return stack;
}

LocalStack::~LocalStack() {
  // Worker and profiler are told together and end side by side; the coordinator after them, because they hand
  // it what they hold.
  for (ChildProcess* process : {worker_.get(), profiler_.get()})
    if (process != nullptr) process->tell_to_stop();
  worker_.reset();
  profiler_.reset();
  coordinator_.reset();
  redis_.reset();
}

std::filesystem::path LocalStack::log_of(const std::string& program) const {
  return options_.site.run() / (program + ".log");
}

Result<std::unique_ptr<ChildProcess>> LocalStack::run(const std::string& program,
                                                      std::vector<std::string> arguments) const {
  ChildProcess::Options options;
  options.words = {(options_.programs / program).string()};
  options.words.insert(options.words.end(), arguments.begin(), arguments.end());
  options.environment = {{"FIXIT_REDIS", options_.site.redis}, {"FIXIT_DATA", options_.site.data.string()}};
  options.log = log_of(program);
  options.grace_ms = kGraceMs;
  return ChildProcess::spawn(std::move(options));
}

Status LocalStack::restart_coordinator() {
  coordinator_.reset();
  FIXIT_ASSIGN_OR_RETURN(coordinator_, run("fixit-coordinator", options_.coordinator_arguments));
  return {};
}

Status LocalStack::restart_worker() {
  worker_.reset();
  FIXIT_ASSIGN_OR_RETURN(worker_, run("fixit-worker", options_.worker_arguments));
  return {};
}

Status LocalStack::restart_profiler() {
  profiler_.reset();
  std::vector<std::string> arguments = {"--gpu", options_.gpu};
  arguments.insert(arguments.end(), options_.profiler_arguments.begin(), options_.profiler_arguments.end());
  FIXIT_ASSIGN_OR_RETURN(profiler_, run("fixit-profiler", arguments));
  return {};
}

Status LocalStack::check() const {
  const std::pair<const char*, const ChildProcess*> programs[] = {{"fixit-coordinator", coordinator_.get()},
                                                                  {"fixit-worker", worker_.get()},
                                                                  {"fixit-profiler", profiler_.get()}};
  for (const auto& [name, process] : programs)
    if (process != nullptr && process->exited())
      return Status(ErrorCode::kUnavailable,
                    fmt::format("{} ended by itself ({}); its log {} ends:\n{}", name, process->ending(),
                                log_of(name).string(), log_tail(log_of(name))));
  return {};
}

Status LocalStack::wait_until_ready() const {
  FIXIT_ASSIGN_OR_RETURN(const auto redis, Redis::connect(redis_->address()));
  Registry registry(*redis);
  const Clock& clock = Clock::system();
  const int64_t started = clock.unix_ms(), deadline = clock.steady_ms() + options_.start_deadline_ms;
  while (clock.steady_ms() < deadline) {
    FIXIT_RETURN_IF_ERROR(check());
    const auto workers = registry.workers(started);
    const auto profilers = registry.profilers(started);
    const bool peers = workers.ok() && !workers->empty() && profilers.ok() && !profilers->empty();
    if (peers && registry.leader().ok()) return {};
    std::this_thread::sleep_for(kPollInterval);
  }
  return Status(ErrorCode::kTimeout,
                fmt::format("coordinator, worker and profiler were not ready within {} ms; their logs are in {}",
                            options_.start_deadline_ms, options_.site.run().string()));
}

}  // namespace fixit

// Everything a sweep needs, on this machine: a private redis-server, a coordinator, a worker and a profiler
// as processes of their own. For `fixit eval`, `fixit launch --local`, and the tests.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/child_process.h"
#include "core/base/status.h"
#include "core/config/site_config.h"
#include "core/queue/embedded_redis.h"

namespace fixit {

class LocalStack {
 public:
  struct Options {
    SiteConfig site;          // site.redis must be "embedded"
    std::string gpu = "cpu";  // of the profiler: a name known to ConfigSearch, or a file
    std::vector<std::string> coordinator_arguments;
    std::vector<std::string> worker_arguments;
    std::vector<std::string> profiler_arguments;
    std::filesystem::path programs = own_program_folder();  // where fixit-coordinator and its sisters lie
    int start_deadline_ms = 30000;
  };
  // Returns once a coordinator leads, a worker and a profiler are registered. Each program's output goes to
  // site.run()/PROGRAM.log; a program that ends early is reported with the end of its log. A data folder that
  // something already runs on is kConflict.
  static Result<std::unique_ptr<LocalStack>> start(Options options);
  // Stops worker and profiler, then the coordinator, then redis-server, each with SIGTERM and a grace.
  ~LocalStack();

  // The site as other programs must see it: `redis` is the private server's address.
  const SiteConfig& site() const { return options_.site; }
  // kUnavailable naming the first program that has ended by itself, with the end of its log.
  Status check() const;

  // Chaos tests kill parts and start them again.
  ChildProcess& coordinator() { return *coordinator_; }
  ChildProcess& worker() { return *worker_; }
  ChildProcess& profiler() { return *profiler_; }
  EmbeddedRedis& redis() { return *redis_; }
  Status restart_coordinator();
  Status restart_worker();
  Status restart_profiler();

 private:
  explicit LocalStack(Options options) : options_(std::move(options)) {}
  std::filesystem::path log_of(const std::string& program) const;
  Result<std::unique_ptr<ChildProcess>> run(const std::string& program,
                                            std::vector<std::string> arguments) const;
  Status wait_until_ready() const;

  Options options_;
  std::unique_ptr<EmbeddedRedis> redis_;
  std::unique_ptr<ChildProcess> coordinator_, worker_, profiler_;
};

}  // namespace fixit

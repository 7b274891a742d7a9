// A world for the worker's engine: real Redis and queue, a store in memory, and stand-ins for model, compiler
// and profiler that answer when a test lets them. Every part can be cut off, as a crash would.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/record/event.h"
#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"
#include "tests/support/temporary_folder.h"
#include "worker/engine/engine.h"

namespace fixit::testing {

// Refuses every call while cut.
class CuttableRedis : public Redis {
 public:
  CuttableRedis(std::unique_ptr<Redis> real, const std::atomic<bool>& cut)
      : real_(std::move(real)), cut_(cut) {}
  Result<RedisReply> call(const Command& command) override {
    if (cut_) return refuse({command});
    return real_->call(command);
  }
  Result<std::vector<RedisReply>> pipeline(const std::vector<Command>& commands) override {
    if (cut_) return refuse(commands);
    return real_->pipeline(commands);
  }
  int refused() const { return refused_; }  // calls that named the first job

 private:
  Status refuse(const std::vector<Command>& commands) {
    for (const Command& command : commands)
      for (const std::string& argument : command)
        if (argument.find("job1") != std::string::npos) ++refused_;
    return {ErrorCode::kUnavailable, "cut off by the test"};
  }
  std::unique_ptr<Redis> real_;
  const std::atomic<bool>& cut_;
  std::atomic<int> refused_ = 0;
};

class CuttableStore : public BlobStore {
 public:
  explicit CuttableStore(BlobStore& real) : real_(real) {}
  std::atomic<bool> cut = false;
  std::atomic<int> refused = 0;
  Result<BlobHash> put(std::string_view bytes) override {
    if (cut) return gone();
    return real_.put(bytes);
  }
  Result<std::string> get(const BlobHash& hash) override {
    if (cut) return gone();
    return real_.get(hash);
  }
  bool contains(const BlobHash& hash) override { return !cut && real_.contains(hash); }
  Status bind(const std::string& name, const BlobHash& hash) override {
    if (cut) return gone();
    return real_.bind(name, hash);
  }
  Result<std::optional<BlobHash>> lookup(const std::string& name) override {
    if (cut) return gone();
    return real_.lookup(name);
  }
  Status sync() override { return cut ? gone() : Status(); }

 private:
  Status gone() {
    ++refused;
    return {ErrorCode::kUnavailable, "cut off by the test"};
  }
  BlobStore& real_;
};

// Calls that a stand-in has been asked for, answered by its rule at once, or kept while `hold`.
template <typename Request, typename Answer>
class StandIn {
 public:
  using Done = std::function<void(Answer)>;
  std::function<Answer(const Request&)> rule;
  std::atomic<bool> hold = false;

  void ask(const Request& request, Done done) {
    std::unique_lock lock(mutex_);
    requests_.push_back(request);
    if (hold) {
      held_.emplace_back(request, std::move(done));
      return;
    }
    lock.unlock();
    done(rule(request));
  }
  void let_go() {
    std::vector<std::pair<Request, Done>> held;
    {
      const std::lock_guard lock(mutex_);
      hold = false;
      held.swap(held_);
    }
    for (auto& [request, done] : held) done(rule(request));
  }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  size_t count() const { return requests().size(); }

 private:
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::pair<Request, Done>> held_;
};

class ModelStandIn : public LlmClient, public StandIn<ChatRequest, ChatOutcome> {
 public:
  void submit(ChatRequest request, std::function<void(ChatOutcome)> done) override {
    ask(request, std::move(done));
  }
};

class CompilerStandIn : public Compiler, public StandIn<CompileJob, CompileRecord> {
 public:
  void submit(CompileJob job, std::function<void(CompileRecord)> done) override { ask(job, std::move(done)); }
  std::string toolchain() const override { return "g++ 0"; }
};

using ProfilerStandIn = StandIn<ProfileRequest, Result<Verdict>>;

// One engine on connections of its own.
struct RunningWorker {
  RunningWorker(const PrivateRedis& server, BlobStore& blobs, Engine::Options options, ModelStandIn& model,
                CompilerStandIn& compiler, ProfilerStandIn& profiler)
      : store(blobs), id(options.worker.id) {
    for (auto* link : {&work, &beat, &blocking})
      *link = std::make_unique<CuttableRedis>(server.connect(), cut);
    Engine::Parts parts;
    parts.redis = work.get();
    parts.beat = beat.get();
    parts.blocking = blocking.get();
    parts.store = &store;
    parts.llm = &model;
    parts.compiler = &compiler;
    parts.profile = [&profiler](const ProfileRequest& request, std::function<void(Result<Verdict>)> answer) {
      profiler.ask(request, std::move(answer));
    };
    auto started = Engine::start(std::move(parts), std::move(options));
    if (!started.ok()) throw std::runtime_error(started.status().to_string());
    engine = std::move(started).value();
  }
  // From here on nothing of it reaches anything, as after kill -9.
  void crash() {
    cut = true;
    store.cut = true;
    engine.reset();
  }

  std::atomic<bool> cut = false;
  CuttableStore store;
  std::string id;
  std::unique_ptr<CuttableRedis> work, beat, blocking;
  std::unique_ptr<Engine> engine;
};

}  // namespace fixit::testing

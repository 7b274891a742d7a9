#include "worker/compile/compiler.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "worker/compile/candidate_compilation.h"
#include "worker/compile/gxx.h"

namespace fixit {
namespace {

using Done = std::function<void(CompileRecord)>;

class CompilerPool : public Compiler {
 public:
  CompilerPool(BlobStore& store, Gxx gxx, int parallel) : store_(store), gxx_(std::move(gxx)) {
    for (int i = 0; i < std::max(parallel, 1); ++i) threads_.emplace_back([this] { serve(); });
  }
  CompilerPool(const CompilerPool&) = delete;
  CompilerPool& operator=(const CompilerPool&) = delete;

  // Compilations that run or wait end without their callbacks.
  ~CompilerPool() override {
    stopping_ = true;
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::string toolchain() const override { return "g++ " + gxx_.version; }

  void submit(CompileJob job, Done done) override {
    std::string key = compile_key(gxx_, job);
    const std::lock_guard lock(mutex_);
    std::vector<Done>& waiters = waiting_[key];
    waiters.push_back(std::move(done));
    if (waiters.size() > 1) return;  // joins the one in flight
    queue_.push_back({std::move(key), std::move(job)});
    changed_.notify_one();
  }

 private:
  struct Queued {
    std::string key;
    CompileJob job;
  };

  void serve() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      Queued next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const CompileRecord record = compile_or_recall(next);
      if (stopping_) return;
      lock.lock();
      const std::vector<Done> waiters = std::move(waiting_.at(next.key));
      waiting_.erase(next.key);
      lock.unlock();
      for (const Done& done : waiters) done(record);
    }
  }

  CompileRecord compile_or_recall(const Queued& next) {
    if (std::optional<CompileRecord> known = recall(next.key)) return *std::move(known);
    const Compiled compiled = compile_candidate(gxx_, next.job, store_, stopping_);
    CompileRecord record = compiled.record;
    record.key = next.key;
    record.toolchain = toolchain();
    if (compiled.repeatable) remember(record);
    return record;
  }

  // A cache that cannot be read is a cache that misses.
  std::optional<CompileRecord> recall(const std::string& key) {
    const auto hash = store_.lookup("compile/" + key);
    if (!hash.ok() || !hash->has_value()) return std::nullopt;
    const auto bytes = store_.get(**hash);
    if (!bytes.ok()) return std::nullopt;
    auto record = decode<CompileRecord>(*bytes);
    if (!record.ok() || record->key != key) return std::nullopt;
    record->cached = true;
    return *std::move(record);
  }

  void remember(const CompileRecord& record) {
    const auto hash = store_.put(encode(record));
    const Status status = hash.ok() ? store_.bind("compile/" + record.key, *hash) : hash.status();
    // kConflict: another worker compiled the same at the same time; seconds differ, the object does not.
    if (!status.ok() && status.code() != ErrorCode::kConflict)
      spdlog::warn("compile cache: {}", status.to_string());
  }

  BlobStore& store_;
  const Gxx gxx_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards waiting_ and queue_
  std::condition_variable changed_;
  std::unordered_map<std::string, std::vector<Done>> waiting_;  // key -> who wants it, queued or running
  std::deque<Queued> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::start(BlobStore& store, int parallel) {
  FIXIT_ASSIGN_OR_RETURN(Gxx gxx, Gxx::find());
  return std::unique_ptr<Compiler>(new CompilerPool(store, std::move(gxx), parallel));
}

}  // namespace fixit

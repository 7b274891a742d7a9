#include "profiler/service/profiler_service.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/clock.h"
#include "core/wire/broker_client.h"
#include "core/wire/remote_store.h"
#include "profiler/service/request_shelf.h"

namespace fixit {
namespace {

constexpr int64_t kTickMs = 100;              // how soon `stop` is seen by an idle profiler
constexpr int64_t kLastAcknowledgeMs = 5000;  // for the last verdicts, before leaving

// Fetches artifacts of waiting requests into the store's cache while another evaluation runs.
class Prefetcher {
 public:
  explicit Prefetcher(BlobStore& blobs)
      : blobs_(blobs), thread_([this](std::stop_token stop) { run(stop); }) {}
  void want(BlobHash hash) {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(hash));
    changed_.notify_one();
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !wanted_.empty(); })) {
      const BlobHash hash = std::move(wanted_.front());
      wanted_.pop_front();
      lock.unlock();
      // A failure is met again, and reported, by the evaluation.
      if (const auto fetched = blobs_.get(hash); !fetched.ok())
        spdlog::debug("artifact {} not fetched ahead: {}", hash, fetched.status().to_string());
      lock.lock();
    }
  }

  BlobStore& blobs_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<BlobHash> wanted_;
  std::jthread thread_;  // last: it uses all of the above
};

class Service {
 public:
  Service(Evaluator& evaluator, const ProfilerServiceOptions& options, const std::atomic<bool>& stop)
      : evaluator_(evaluator), options_(options), stop_(stop), shelf_(Clock::system()) {}

  void run();

 private:
  BrokerClient::Options client_options();
  void receive(Message message);
  void offer_verdicts();
  void watch(std::stop_token stopping);
  void evaluate(const ProfileRequest& request);
  void drain();

  Evaluator& evaluator_;
  const ProfilerServiceOptions& options_;
  const std::atomic<bool>& stop_;
  RequestShelf shelf_;
  std::atomic<bool> gave_up_{false};  // on the running evaluation, at the end of a drain
  std::mutex prefetcher_mutex_;
  Prefetcher* prefetcher_ = nullptr;
  std::unique_ptr<BrokerClient> client_;
  std::unique_ptr<BlobStore> blobs_;
};

BrokerClient::Options Service::client_options() {
  BrokerClient::Options options;
  options.endpoint = options_.endpoint;
  options.hello.role = PeerRole::kProfiler;
  options.hello.id = options_.id;
  options.hello.host = options_.host;
  options.hello.pid = getpid();
  options.hello.version = FIXIT_VERSION;
  options.hello.capability = evaluator_.capability();
  options.refresh_hello = [this](Hello& hello) { hello.running = shelf_.held(); };
  options.running = [this] { return shelf_.held(); };
  options.on_message = [this](Message message) { receive(std::move(message)); };
  options.on_connected = [](const Welcome& welcome, bool first) {
    spdlog::info("{} to coordinator {}, epoch {}", first ? "connected" : "connected again",
                 welcome.coordinator, welcome.epoch);
  };
  return options;
}

// On the client's thread: nothing here blocks.
void Service::receive(Message message) {
  if (message.type == MessageType::kProfile) {
    auto request = decode<ProfileRequest>(message.body);
    if (!request.ok())
      return spdlog::error("a profile request cannot be read: {}", request.status().to_string());
    const BlobHash artifact = request->artifact;
    spdlog::debug("request {} for {}", request->key, request->job);
    if (!shelf_.put(std::move(request).value())) return;
    const std::lock_guard lock(prefetcher_mutex_);
    if (prefetcher_ != nullptr) prefetcher_->want(artifact);
    return;
  }
  const auto reference = decode<ProfileRef>(message.body);
  if (!reference.ok()) return spdlog::error("{}: {}", name_of(message.type), reference.status().to_string());
  if (message.type == MessageType::kVerdictAck) return shelf_.acknowledge(reference->key);
  if (message.type == MessageType::kCancelled) shelf_.cancel(reference->key, reference->reason);
}

void Service::offer_verdicts() {
  for (const VerdictReply& reply : shelf_.unacknowledged())
    client_->post(make_message(MessageType::kVerdict, {}, reply));
}

// Beside the evaluation: offers verdicts again, and ends a drain that takes too long.
void Service::watch(std::stop_token stopping) {
  std::mutex mutex;
  std::condition_variable_any never;
  int64_t offered_ms = 0, draining_since_ms = 0;
  bool was_connected = false;
  while (!stopping.stop_requested()) {
    const int64_t now = Clock::system().steady_ms();
    const bool connected = client_->connected();
    if (connected && (!was_connected || now - offered_ms >= options_.repost_ms)) {
      offer_verdicts();
      offered_ms = now;
    }
    was_connected = connected;
    if (stop_ && draining_since_ms == 0) {
      draining_since_ms = now;
      client_->post(make_message(MessageType::kCredit, {}, Credit{0}));
      shelf_.drop_waiting();
    }
    if (draining_since_ms != 0 && now - draining_since_ms > options_.drain_ms) {
      gave_up_ = true;
      shelf_.give_up();
    }
    std::unique_lock lock(mutex);
    never.wait_for(lock, stopping, std::chrono::milliseconds(kTickMs), [] { return false; });
  }
}

void Service::evaluate(const ProfileRequest& request) {
  spdlog::info("evaluating {} of sweep {}, job {}", request.key, request.sweep, request.job);
  Verdict verdict = evaluator_.evaluate(request, *blobs_, shelf_.cancelled());
  spdlog::info("{}: {}{}{}", request.key, name_of(verdict.status), verdict.check.empty() ? "" : ", ",
               verdict.check);
  const VerdictReply reply{request.key, verdict};
  shelf_.finish(std::move(verdict));
  // Given up for the sake of leaving: the broker hands the request to another profiler instead.
  if (gave_up_) return shelf_.acknowledge(request.key);
  client_->post(make_message(MessageType::kVerdict, {}, reply));
}

void Service::drain() {
  offer_verdicts();
  if (!shelf_.wait_acknowledged(kLastAcknowledgeMs))
    spdlog::warn("{} verdicts were not acknowledged; their requests will be evaluated again",
                 shelf_.unacknowledged().size());
}

void Service::run() {
  client_ = BrokerClient::start(client_options());
  blobs_ = make_remote_store(*client_, options_.blob_timeout_ms, options_.blob_cache_bytes);
  {
    Prefetcher prefetcher(*blobs_);
    {
      const std::lock_guard lock(prefetcher_mutex_);
      prefetcher_ = &prefetcher;
    }
    std::jthread watcher([this](std::stop_token stopping) { watch(stopping); });
    while (!stop_)
      if (const auto request = shelf_.take(kTickMs)) evaluate(*request);
    drain();
    const std::lock_guard lock(prefetcher_mutex_);
    prefetcher_ = nullptr;
  }
  blobs_.reset();
  client_.reset();
}

}  // namespace

void serve_profiler(Evaluator& evaluator, const ProfilerServiceOptions& options,
                    const std::atomic<bool>& stop) {
  Service(evaluator, options, stop).run();
}

}  // namespace fixit

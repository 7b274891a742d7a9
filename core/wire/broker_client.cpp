#include "core/wire/broker_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "core/wire/dealer_connection.h"
#include "core/wire/wake_fd.h"

namespace fixit {
namespace {

constexpr int64_t kGreetingMs = 2000;  // for the welcome, before the endpoint is asked for again
constexpr int64_t kFirstRetryMs = 50;
constexpr int64_t kLastRetryMs = 2000;
constexpr int kGoodbyeMs = 250;

struct Pending {
  Message message;
  int64_t deadline_ms = 0;  // steady
  int64_t timeout_ms = 0;
  BrokerClient::Answer answer;
};

class DealerBrokerClient : public BrokerClient {
 public:
  explicit DealerBrokerClient(Options options)
      : options_(std::move(options)), random_(std::random_device{}()) {
    thread_ = std::thread([this] { run(); });
  }

  ~DealerBrokerClient() override {
    stop_ = true;
    wake_.wake();
    thread_.join();
  }

  void request(MessageType type, std::string body, std::vector<std::string> blobs, int64_t timeout_ms,
               Answer answer) override {
    Pending pending{
        {type, {}, std::move(body), std::move(blobs)}, now() + timeout_ms, timeout_ms, std::move(answer)};
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(pending));
    }
    wake_.wake();
  }

  void post(Message message) override {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(message));
    }
    wake_.wake();
  }

  bool connected() const override { return welcomed_; }

 private:
  static int64_t now() { return Clock::system().steady_ms(); }

  void run();
  void connect();
  void disconnect(const std::string& why);
  void wait();
  void take_asked();
  void handle(Message message);
  void handle_error(const Message& message);
  void welcome(const Message& message);
  void answer(Message message);
  void keep_alive();
  void expire();
  void send(const Message& message);
  void say_goodbye();
  int64_t jittered(int64_t milliseconds) {
    return std::uniform_int_distribution<int64_t>(milliseconds * 4 / 5, milliseconds * 6 / 5)(random_);
  }

  const Options options_;
  WakeFd wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> welcomed_{false};

  std::mutex mutex_;
  std::deque<Pending> asked_;
  std::deque<Message> posted_;

  // Below: the thread's own.
  std::mt19937 random_;
  zmq::context_t context_;
  std::unique_ptr<DealerConnection> connection_;
  std::map<uint64_t, Pending> pending_;  // by number, which is the id's: sent again in the order of asking
  uint64_t last_id_ = 0;
  std::string hello_id_;
  bool ever_welcomed_ = false;
  int64_t heartbeat_ms_ = 1000;
  int64_t next_heartbeat_ = 0;
  int64_t last_heard_ = 0;
  int64_t opened_ = 0;
  int64_t next_connect_ = 0;
  int64_t retry_ms_ = kFirstRetryMs;
  std::string problem_;  // why there is no connection, for answers that time out
  std::thread thread_;   // last: it uses all of the above
};

void DealerBrokerClient::run() {
  while (!stop_) {
    if (!connection_ && now() >= next_connect_) connect();
    wait();
    take_asked();
    if (connection_) keep_alive();
    expire();
  }
  say_goodbye();
  take_asked();
  for (auto& [id, pending] : pending_)
    pending.answer(Status(ErrorCode::kCancelled, "the connection to the broker was closed"));
}

void DealerBrokerClient::connect() {
  const auto endpoint = options_.endpoint();
  if (!endpoint.ok()) return disconnect(endpoint.status().to_string());
  auto connection = DealerConnection::open(context_, *endpoint);
  if (!connection.ok()) return disconnect(connection.status().to_string());
  connection_ = std::move(*connection);
  opened_ = last_heard_ = now();
  Hello hello = options_.hello;
  if (options_.refresh_hello) options_.refresh_hello(hello);
  hello_id_ = fmt::format("hello-{}", ++last_id_);
  send(make_message(MessageType::kHello, hello_id_, hello));
}

void DealerBrokerClient::disconnect(const std::string& why) {
  if (why != problem_) spdlog::warn("broker: {}; connecting again", why);
  problem_ = why;
  welcomed_ = false;
  connection_.reset();
  next_connect_ = now() + jittered(retry_ms_);
  retry_ms_ = std::min(retry_ms_ * 2, kLastRetryMs);
}

void DealerBrokerClient::wait() {
  const int64_t at = now();
  int64_t until = connection_ ? (welcomed_ ? std::min(next_heartbeat_, last_heard_ + options_.silence_ms)
                                           : opened_ + kGreetingMs)
                              : next_connect_;
  for (const auto& [id, pending] : pending_) until = std::min(until, pending.deadline_ms);
  const int timeout = static_cast<int>(std::clamp<int64_t>(until - at, 0, 1000));
  if (connection_) {
    for (auto& message : connection_->receive(timeout, wake_.fd()))
      if (connection_) handle(std::move(message));
  } else {
    pollfd item{wake_.fd(), POLLIN, 0};
    ::poll(&item, 1, timeout);
  }
  wake_.clear();
}

void DealerBrokerClient::take_asked() {
  std::deque<Pending> asked;
  std::deque<Message> posted;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(asked_);
    posted.swap(posted_);
  }
  for (auto& pending : asked) {
    const uint64_t id = ++last_id_;
    pending.message.id = std::to_string(id);
    const auto [place, added] = pending_.emplace(id, std::move(pending));
    if (welcomed_) send(place->second.message);
  }
  if (welcomed_)
    for (const auto& message : posted) send(message);
}

// A message that cannot be sent means a broker that does not read: a new connection sends it again.
void DealerBrokerClient::send(const Message& message) {
  if (!connection_) return;
  if (const Status sent = connection_->send(message); !sent.ok()) disconnect(sent.message());
}

void DealerBrokerClient::handle(Message message) {
  last_heard_ = now();
  switch (message.type) {
    case MessageType::kWelcome:
      return welcome(message);
    case MessageType::kHeartbeat:
      return;
    case MessageType::kCancelled:
    case MessageType::kVerdictAck:
    case MessageType::kProfile:
      if (options_.on_message) options_.on_message(std::move(message));
      return;
    case MessageType::kError:
      if (message.id.empty() || message.id == hello_id_) return handle_error(message);
      [[fallthrough]];
    default:
      answer(std::move(message));
  }
}

// An error that answers no request: the broker does not know this connection, or refuses its hello.
void DealerBrokerClient::handle_error(const Message& message) {
  const auto error = decode<ErrorReply>(message.body);
  disconnect(
      fmt::format("{}: {}", connection_->endpoint(),
                  error.ok() ? Status(error->code, error->message).to_string() : error.status().to_string()));
}

void DealerBrokerClient::welcome(const Message& message) {
  const auto body = decode<Welcome>(message.body);
  if (welcomed_ || message.id != hello_id_) return;
  if (!body.ok()) return disconnect("the broker's welcome: " + body.status().message());
  heartbeat_ms_ = std::clamp<int64_t>(body->heartbeat_ms, 10, 60000);
  next_heartbeat_ = now() + jittered(heartbeat_ms_);
  retry_ms_ = kFirstRetryMs;
  problem_.clear();
  welcomed_ = true;
  for (const auto& [id, pending] : pending_) send(pending.message);
  const bool first = !ever_welcomed_;
  ever_welcomed_ = true;
  if (options_.on_connected) options_.on_connected(*body, first);
}

void DealerBrokerClient::answer(Message message) {
  uint64_t id = 0;
  const char* end = message.id.data() + message.id.size();
  if (std::from_chars(message.id.data(), end, id).ptr != end) return;
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // too late, or sent twice around a reconnection
  const Answer call = std::move(found->second.answer);
  pending_.erase(found);
  if (message.type != MessageType::kError) return call(std::move(message));
  const auto error = decode<ErrorReply>(message.body);
  if (!error.ok()) return call(error.status());
  call(Status(error->code == ErrorCode::kOk ? ErrorCode::kInternal : error->code, error->message));
}

void DealerBrokerClient::keep_alive() {
  const int64_t at = now();
  if (connection_->dropped()) return disconnect(connection_->endpoint() + " closed the connection");
  if (!welcomed_ && at - opened_ > kGreetingMs)
    return disconnect(connection_->endpoint() + " does not answer");
  if (at - last_heard_ > options_.silence_ms)
    return disconnect(fmt::format("{} is silent for {} ms", connection_->endpoint(), at - last_heard_));
  if (!welcomed_ || at < next_heartbeat_) return;
  next_heartbeat_ = at + jittered(heartbeat_ms_);
  Heartbeat heartbeat{Clock::system().unix_ms(), {}};
  if (options_.running) heartbeat.running = options_.running();
  send(make_message(MessageType::kHeartbeat, {}, heartbeat));
}

void DealerBrokerClient::expire() {
  const int64_t at = now();
  for (auto next = pending_.begin(); next != pending_.end();) {
    if (next->second.deadline_ms > at) {
      ++next;
      continue;
    }
    const Pending expired = std::move(next->second);
    next = pending_.erase(next);
    expired.answer(Status(ErrorCode::kTimeout, fmt::format("the broker did not answer `{}` within {} ms{}",
                                                           name_of(expired.message.type), expired.timeout_ms,
                                                           problem_.empty() ? "" : " (" + problem_ + ")")));
  }
}

void DealerBrokerClient::say_goodbye() {
  if (connection_ && welcomed_) {
    take_asked();  // what was posted before the end still goes out
    send(make_message(MessageType::kGoodbye, {}, Heartbeat{}));
    if (connection_) connection_->linger(kGoodbyeMs);
  }
  welcomed_ = false;
  connection_.reset();
}

}  // namespace

std::unique_ptr<BrokerClient> BrokerClient::start(Options options) {
  return std::make_unique<DealerBrokerClient>(std::move(options));
}

Result<Message> BrokerClient::call(MessageType type, std::string body, std::vector<std::string> blobs,
                                   int64_t timeout_ms) {
  std::promise<Result<Message>> promise;
  auto future = promise.get_future();
  request(type, std::move(body), std::move(blobs), timeout_ms,
          [&promise](Result<Message> result) { promise.set_value(std::move(result)); });
  return future.get();
}

}  // namespace fixit

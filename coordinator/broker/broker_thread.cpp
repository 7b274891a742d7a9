#include "coordinator/broker/broker_thread.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "coordinator/broker/store_requests.h"

namespace fixit {
namespace {

constexpr int kMaxCredits = 64;
constexpr size_t kMaxPeerIdBytes = 256;

}  // namespace

void BrokerInbox::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!socket_) return;
  tasks_.push_back(std::move(task));
  socket_->wake();
}

std::deque<std::function<void()>> BrokerInbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(tasks_, {});
}

void BrokerInbox::close() {
  const std::lock_guard lock(mutex_);
  socket_ = nullptr;
  tasks_.clear();
}

Result<std::unique_ptr<Broker>> Broker::start(Options options) {
  if (!options.store) return Status(ErrorCode::kInvalid, "a broker needs a store");
  FIXIT_ASSIGN_OR_RETURN(auto socket, RouterSocket::bind(options.listen));
  return Result<std::unique_ptr<Broker>>(
      std::make_unique<BrokerThread>(std::move(options), std::move(socket)));
}

BrokerThread::BrokerThread(Options options, std::unique_ptr<RouterSocket> socket)
    : options_(std::move(options)),
      clock_(options_.clock ? *options_.clock : Clock::system()),
      socket_(std::move(socket)),
      endpoint_(socket_->endpoint()),
      inbox_(std::make_shared<BrokerInbox>(*socket_)),
      random_(std::random_device{}()),
      queue_({options_.max_queue, options_.max_profiler_deaths}, clock_, *this) {
  thread_ = std::thread([this] { run(); });
}

BrokerThread::~BrokerThread() {
  stop_ = true;
  socket_->wake();
  thread_.join();
  inbox_->close();
}

void BrokerThread::run() {
  last_round_ = clock_.steady_ms();
  const int wait_ms = static_cast<int>(std::clamp<int64_t>(options_.heartbeat_ms / 4, 5, 250));
  while (!stop_) {
    for (auto& received : socket_->receive(wait_ms)) take(std::move(received));
    for (auto& task : inbox_->take()) task();
    const int64_t now = clock_.steady_ms();
    // After a gap in our own view (a suspended process) everybody seems silent: each gets a whole fresh term.
    if (now - last_round_ > options_.silence_ms / 2)
      for (auto& [id, peer] : peers_) peer.last_heard = now;
    last_round_ = now;
    keep_alive(now);
    queue_.expire();
    report_view(now);
  }
}

void BrokerThread::take(RouterSocket::Received received) {
  if (received.message.type == MessageType::kHello) return greet(received.peer, received.message);
  const auto known = connections_.find(received.peer);
  if (known == connections_.end()) {
    // A peer that a former broker knew, or one that was given up: without an id it makes the peer say hello
    // again.
    if (received.message.type != MessageType::kGoodbye)
      (void)socket_->send(received.peer, error_message({}, Status(ErrorCode::kStale, "say hello first")));
    return;
  }
  Peer& peer = peers_.at(known->second);
  peer.last_heard = clock_.steady_ms();
  handle(peer, std::move(received.message));
}

Status BrokerThread::check(const Hello& hello) const {
  if (hello.id.empty() || hello.id.size() > kMaxPeerIdBytes)
    return Status(ErrorCode::kInvalid, fmt::format("a peer's id has 1 to {} bytes", kMaxPeerIdBytes));
  if (hello.role != PeerRole::kProfiler) return {};
  if (!hello.capability)
    return Status(ErrorCode::kInvalid, "a profiler's hello must say what it is capable of");
  if (hello.capability->gpu.empty() || hello.capability->evaluator.empty())
    return Status(ErrorCode::kInvalid, "a profiler's capability must name its GPU kind and its evaluator");
  if (hello.capability->credits < 1 || hello.capability->credits > kMaxCredits)
    return Status(ErrorCode::kInvalid, fmt::format("a profiler takes 1 to {} requests at once, not {}",
                                                   kMaxCredits, hello.capability->credits));
  return {};
}

void BrokerThread::greet(const std::string& connection, const Message& message) {
  const auto hello = decode<Hello>(message.body);
  const Status status = hello.ok() ? check(*hello) : Status(ErrorCode::kInvalid, hello.status().message());
  if (!status.ok()) {
    invalid_ += 1;
    spdlog::warn("broker: a hello is refused: {}", status.message());
    (void)socket_->send(connection, error_message(message.id, status.with_context("hello")));
    return;
  }
  // A connection that introduces itself anew under another name is that other peer from now on.
  const auto former = connections_.find(connection);
  if (former != connections_.end() && former->second != hello->id) {
    const std::string former_id = former->second;
    remove_peer(former_id, {});
  }
  const auto known = peers_.find(hello->id);
  const bool back = known != peers_.end();
  if (back) {
    connections_.erase(known->second.connection);
    if (known->second.hello.role == PeerRole::kProfiler &&
        (hello->role != PeerRole::kProfiler || hello->capability->gpu != known->second.hello.capability->gpu))
      queue_.remove_profiler(hello->id, {});
  }
  const int64_t now = clock_.steady_ms();
  peers_[hello->id] = Peer{*hello, connection, now, now + options_.heartbeat_ms, 0};
  connections_[connection] = hello->id;
  spdlog::info("broker: {} {} {}", name_of(hello->role), hello->id, back ? "is back" : "connected");
  const Welcome welcome{options_.coordinator, options_.epoch, options_.heartbeat_ms};
  if (!send(hello->id, make_message(MessageType::kWelcome, message.id, welcome))) return;
  if (hello->role == PeerRole::kProfiler) queue_.add_profiler(hello->id, *hello->capability, hello->running);
}

void BrokerThread::remove_peer(const std::string& id, const std::string& death) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const bool profiler = found->second.hello.role == PeerRole::kProfiler;
  connections_.erase(found->second.connection);
  peers_.erase(found);
  std::erase_if(awaited_, [&](const auto& open) { return open.first == id; });
  if (profiler) queue_.remove_profiler(id, death);
  queue_.remove_waiters(id);
}

void BrokerThread::keep_alive(int64_t now) {
  // One whose connection has broken has this long to come back, before its work is given to others.
  const int64_t grace_ms = std::min(options_.silence_ms, 2 * options_.heartbeat_ms);
  std::vector<std::pair<std::string, std::string>> gone;
  for (auto& [id, peer] : peers_) {
    if (now >= peer.next_heartbeat) {
      const int64_t jitter = std::max<int64_t>(1, options_.heartbeat_ms / 5);
      peer.next_heartbeat =
          now + options_.heartbeat_ms + std::uniform_int_distribution<int64_t>(-jitter, jitter)(random_);
      send(id, make_message(MessageType::kHeartbeat, {}, Heartbeat{clock_.unix_ms(), {}}));
    }
    const auto& hello = peer.hello;
    if (now - peer.last_heard > options_.silence_ms)
      gone.emplace_back(id, fmt::format("{} {} (host {}, pid {}) was silent for {} ms", name_of(hello.role),
                                        id, hello.host, hello.pid, now - peer.last_heard));
    else if (peer.unreachable_since > 0 && now - peer.unreachable_since > grace_ms)
      gone.emplace_back(id, fmt::format("{} {} (host {}, pid {}) closed its connection without a goodbye",
                                        name_of(hello.role), id, hello.host, hello.pid));
  }
  for (const auto& [id, death] : gone) {
    spdlog::warn("broker: {}", death);
    remove_peer(id, death);
  }
}

void BrokerThread::report_view(int64_t now) {
  if (now < next_view_) return;
  next_view_ = now + options_.view_ms;
  if (socket_->malformed() > malformed_seen_)
    spdlog::warn("broker: {} malformed messages so far, {} that made no sense", socket_->malformed(),
                 invalid_);
  malformed_seen_ = socket_->malformed();
  queue_.sample_busy_share(options_.view_ms);
  if (!options_.on_view) return;
  std::map<std::string, Hello> hellos;
  for (const auto& [id, peer] : peers_) hellos[id] = peer.hello;
  BrokerView view;
  queue_.fill(view, hellos);
  options_.on_view(view);
}

bool BrokerThread::send(const std::string& peer_id, const Message& message) {
  const auto found = peers_.find(peer_id);
  if (found == peers_.end()) return false;
  if (socket_->send(found->second.connection, message).ok()) return true;
  // It will say hello again and ask again for what it has not got.
  if (found->second.unreachable_since == 0) found->second.unreachable_since = clock_.steady_ms();
  return false;
}

}  // namespace fixit

// The broker's one thread: its socket, its peers, and what each message does.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "coordinator/broker/broker.h"
#include "coordinator/broker/profile_queue.h"
#include "coordinator/broker/task_pool.h"
#include "core/wire/socket.h"

namespace fixit {

// Closures for the broker's thread from any other. Outlives the broker in whoever still holds an answer to
// give.
class BrokerInbox {
 public:
  explicit BrokerInbox(RouterSocket& socket) : socket_(&socket) {}
  void post(std::function<void()> task);  // dropped once closed
  std::deque<std::function<void()>> take();
  void close();

 private:
  std::mutex mutex_;
  RouterSocket* socket_;  // null once closed
  std::deque<std::function<void()>> tasks_;
};

class BrokerThread : public Broker, private ProfileActions {
 public:
  BrokerThread(Options options, std::unique_ptr<RouterSocket> socket);
  ~BrokerThread() override;
  std::string endpoint() const override { return endpoint_; }

 private:
  struct Peer {
    Hello hello;
    std::string connection;  // routing identity, another one after each reconnection
    int64_t last_heard = 0;  // steady milliseconds, as all below
    int64_t next_heartbeat = 0;
    int64_t unreachable_since = 0;  // 0: reachable
  };

  void run();
  void take(RouterSocket::Received received);
  void greet(const std::string& connection, const Message& message);
  Status check(const Hello& hello) const;
  void handle(Peer& peer, Message message);
  void profile(const Peer& peer, const Message& message);
  void await_job(const Peer& peer, const Message& message);
  void launch(const Peer& peer, const Message& message);
  void from_profiler(const Peer& peer, const Message& message);
  void invalid(const Peer& peer, const Message& message, const Status& status);
  void remove_peer(const std::string& id, const std::string& death);
  void keep_alive(int64_t now);
  void report_view(int64_t now);
  bool send(const std::string& peer_id, const Message& message);
  // Runs `work` in the pool and sends what it returns to the peer.
  void answer_from(TaskPool& pool, const std::string& peer_id, std::function<Message()> work);

  // ProfileActions
  void look_up(const std::string& key, const std::vector<JudgeIdentity>& judges) override;
  void store(const std::string& key, const JudgeIdentity& judge, const Verdict& verdict) override;
  bool dispatch(const std::string& profiler, const ProfileRequest& request) override;
  void stop_work(const std::string& profiler, const std::string& key, const std::string& reason) override;
  void acknowledge(const std::string& profiler, const std::string& key) override;
  void answer(const Waiter& waiter, const std::string& key, const Verdict& verdict) override;
  void refuse(const Waiter& waiter, const Status& status) override;

  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<RouterSocket> socket_;
  const std::string endpoint_;
  const std::shared_ptr<BrokerInbox> inbox_;
  std::mt19937 random_;
  ProfileQueue queue_;
  std::map<std::string, Peer> peers_;                      // by hello id
  std::map<std::string, std::string> connections_;         // routing identity -> hello id
  std::set<std::pair<std::string, std::string>> awaited_;  // peer and message id of open await_job requests
  int64_t next_view_ = 0;
  int64_t last_round_ = 0;
  int64_t malformed_seen_ = 0;
  int64_t invalid_ = 0;  // messages whose body did not decode or that make no sense
  std::atomic<bool> stop_{false};
  // Destroyed first, in this order reversed: pools may still post, the thread uses everything above.
  TaskPool store_pool_{4};
  TaskPool verdict_pool_{1};  // one thread: requests enter the queue in the order they came
  TaskPool launch_pool_{1};   // a launch takes seconds and must not hold up blobs
  std::thread thread_;
};

}  // namespace fixit

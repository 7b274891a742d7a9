// Peers for tests of the broker: a worker, a profiler that answers when told, and a raw socket that can do
// wrong.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "core/wire/broker_client.h"

namespace fixit {

// Polls until `condition` holds; false after the deadline.
inline bool eventually(const std::function<bool()>& condition, int deadline_ms = 10000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline ProfileRequest make_request(const std::string& name, const std::string& gpu = "cpu") {
  ProfileRequest request;
  request.compile_key = name;
  request.gpu = gpu;
  request.job = "job of " + name;
  request.key = profile_request_key(request);
  return request;
}

inline Verdict make_verdict(TurnStatus status, const std::string& evidence = "") {
  Verdict verdict;
  verdict.status = status;
  verdict.evidence = evidence;
  return verdict;
}

inline ProfilerCapability cpu_profiler(int credits = 2) {
  return {"cpu", "test processor", "evaluator 1", "process", "seccomp", true, credits};
}

// Where the broker is now; tests move it.
class Endpoint {
 public:
  void set(const std::string& endpoint) {
    const std::lock_guard lock(mutex_);
    endpoint_ = endpoint;
  }
  std::function<Result<std::string>()> asker() {
    return [this]() -> Result<std::string> {
      const std::lock_guard lock(mutex_);
      if (endpoint_.empty()) return Status(ErrorCode::kUnavailable, "no coordinator leads");
      return endpoint_;
    };
  }

 private:
  std::mutex mutex_;
  std::string endpoint_;
};

class TestWorker {
 public:
  TestWorker(Endpoint& endpoint, const std::string& id) {
    BrokerClient::Options options;
    options.endpoint = endpoint.asker();
    options.hello.role = PeerRole::kWorker;
    options.hello.id = id;
    client_ = BrokerClient::start(std::move(options));
  }
  ~TestWorker() { client_.reset(); }

  BrokerClient& client() { return *client_; }

  // The answer arrives under the number returned.
  size_t ask(const ProfileRequest& request, int64_t timeout_ms = 30000) {
    size_t number;
    {
      const std::lock_guard lock(mutex_);
      number = answers_.size();
      answers_.emplace_back();
    }
    client_->request(MessageType::kProfile, encode(request), {}, timeout_ms,
                     [this, number](Result<Message> reply) {
                       const std::lock_guard lock(mutex_);
                       answers_[number].push_back(std::move(reply));
                     });
    return number;
  }

  // Waits for the one answer.
  Result<Verdict> answer(size_t number) {
    if (!eventually([&] { return answers(number) > 0; }))
      return Status(ErrorCode::kTimeout, "no answer in the test");
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(answers_[number].size(), 1u);
    const auto& reply = answers_[number][0];
    if (!reply.ok()) return reply.status();
    auto body = decode<VerdictReply>(reply->body);
    if (!body.ok()) return body.status();
    return body->verdict;
  }
  size_t answers(size_t number) {
    const std::lock_guard lock(mutex_);
    return answers_[number].size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<Result<Message>>> answers_;
  std::unique_ptr<BrokerClient> client_;
};

class TestProfiler {
 public:
  TestProfiler(Endpoint& endpoint, const std::string& id, ProfilerCapability capability = cpu_profiler()) {
    BrokerClient::Options options;
    options.endpoint = endpoint.asker();
    options.hello.role = PeerRole::kProfiler;
    options.hello.id = id;
    options.hello.capability = std::move(capability);
    options.running = [this] { return running(); };
    options.refresh_hello = [this](Hello& hello) { hello.running = running(); };
    options.on_message = [this](Message message) { take(message); };
    options.on_connected = [this](const Welcome&, bool) { offer(); };
    client_ = BrokerClient::start(std::move(options));
  }
  ~TestProfiler() { client_.reset(); }

  BrokerClient& client() { return *client_; }

  void judge(const std::string& key, const Verdict& verdict) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(running_, key);
      unacknowledged_[key] = verdict;
    }
    offer();
  }
  // How often the key was sent here.
  int received(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return received_[key];
  }
  std::vector<std::string> running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  std::vector<std::string> cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }
  size_t unacknowledged() {
    const std::lock_guard lock(mutex_);
    return unacknowledged_.size();
  }

 private:
  void take(const Message& message) {
    const std::lock_guard lock(mutex_);
    if (message.type == MessageType::kProfile) {
      const auto request = decode<ProfileRequest>(message.body);
      running_.push_back(request->key);
      received_[request->key] += 1;
      return;
    }
    const auto ref = decode<ProfileRef>(message.body);
    if (message.type == MessageType::kVerdictAck) unacknowledged_.erase(ref->key);
    if (message.type == MessageType::kCancelled) cancelled_.push_back(ref->key);
  }
  void offer() {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, verdict] : unacknowledged_)
      client_->post(make_message(MessageType::kVerdict, {}, VerdictReply{key, verdict}));
  }

  std::mutex mutex_;
  std::vector<std::string> running_;
  std::vector<std::string> cancelled_;
  std::map<std::string, int> received_;
  std::map<std::string, Verdict> unacknowledged_;
  std::unique_ptr<BrokerClient> client_;
};

// Sends what it likes, and only what it is told to: no heartbeats, no goodbye.
class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint) : socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
  }

  void send(const std::vector<std::string>& frames) {
    for (size_t i = 0; i < frames.size(); ++i)
      socket_.send(zmq::buffer(frames[i]),
                   i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  void send(const Message& message) { send(encode_message(message)); }

  // The next message that is no heartbeat.
  Result<Message> receive(int timeout_ms = 10000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (std::chrono::steady_clock::now() < end) {
      socket_.set(zmq::sockopt::rcvtimeo, 20);
      std::vector<std::string> frames;
      zmq::message_t frame;
      if (!socket_.recv(frame)) continue;
      frames.push_back(frame.to_string());
      while (frame.more() && socket_.recv(frame)) frames.push_back(frame.to_string());
      auto message = decode_message(frames);
      if (!message.ok() || message->type != MessageType::kHeartbeat) return message;
    }
    return Status(ErrorCode::kTimeout, "nothing came");
  }

  Result<Message> hello(PeerRole role, const std::string& id,
                        std::optional<ProfilerCapability> capability = {}) {
    Hello hello;
    hello.role = role;
    hello.id = id;
    hello.capability = std::move(capability);
    send(make_message(MessageType::kHello, "h", hello));
    return receive();
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

}  // namespace fixit

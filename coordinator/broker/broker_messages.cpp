// What the broker does with each message of a peer that it knows.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "coordinator/broker/broker_thread.h"
#include "coordinator/broker/store_requests.h"

namespace fixit {

void BrokerThread::handle(Peer& peer, Message message) {
  if (is_store_request(message.type))
    return answer_from(store_pool_, peer.hello.id, [store = options_.store, request = std::move(message)] {
      return answer_store_request(*store, request);
    });
  switch (message.type) {
    case MessageType::kHeartbeat:
      return;
    case MessageType::kGoodbye:
      spdlog::info("broker: {} {} leaves", name_of(peer.hello.role), peer.hello.id);
      return remove_peer(std::string(peer.hello.id), {});
    case MessageType::kProfile:
      return profile(peer, message);
    case MessageType::kCancel: {
      const auto ref = decode<ProfileRef>(message.body);
      if (!ref.ok()) return invalid(peer, message, ref.status());
      return queue_.cancel(peer.hello.id, ref->key, ref->reason);
    }
    case MessageType::kLaunch:
      return launch(peer, message);
    case MessageType::kAwaitJob:
      return await_job(peer, message);
    case MessageType::kCredit:
    case MessageType::kVerdict:
      return from_profiler(peer, message);
    default:
      return invalid(peer, message, Status(ErrorCode::kInvalid, "a broker is not asked that"));
  }
}

void BrokerThread::invalid(const Peer& peer, const Message& message, const Status& status) {
  invalid_ += 1;
  const Status error(ErrorCode::kInvalid, fmt::format("{}: {}", name_of(message.type), status.message()));
  spdlog::warn("broker: {} {}: {}", name_of(peer.hello.role), peer.hello.id, error.message());
  // An error without an id would send the peer back to its hello; there is nobody to tell.
  if (!message.id.empty()) send(peer.hello.id, error_message(message.id, error));
}

void BrokerThread::profile(const Peer& peer, const Message& message) {
  auto request = decode<ProfileRequest>(message.body);
  if (!request.ok()) return invalid(peer, message, request.status());
  if (peer.hello.role == PeerRole::kProfiler)
    return invalid(peer, message, Status(ErrorCode::kInvalid, "a profiler asks for no profiles"));
  if (request->gpu.empty())
    return invalid(peer, message, Status(ErrorCode::kInvalid, "the GPU kind is missing"));
  // The key is what verdicts are kept under: a wrong one would hand them to other candidates.
  if (request->key != profile_request_key(*request))
    return invalid(peer, message,
                   Status(ErrorCode::kInvalid, "the key is not that of the request's content"));
  queue_.ask(std::move(*request), {peer.hello.id, message.id});
}

void BrokerThread::from_profiler(const Peer& peer, const Message& message) {
  if (peer.hello.role != PeerRole::kProfiler)
    return invalid(peer, message, Status(ErrorCode::kInvalid, "only profilers send it"));
  if (message.type == MessageType::kCredit) {
    const auto credit = decode<Credit>(message.body);
    if (!credit.ok()) return invalid(peer, message, credit.status());
    return queue_.grant(peer.hello.id, credit->credits);
  }
  auto reply = decode<VerdictReply>(message.body);
  if (!reply.ok()) return invalid(peer, message, reply.status());
  if (!is_blob_hash(reply->key))
    return invalid(peer, message, Status(ErrorCode::kInvalid, "a verdict without a key"));
  queue_.take_verdict(peer.hello.id, std::move(*reply));
}

void BrokerThread::launch(const Peer& peer, const Message& message) {
  auto request = decode<LaunchRequest>(message.body);
  if (!request.ok()) return invalid(peer, message, request.status());
  if (!options_.launch)
    return void(send(peer.hello.id, error_message(message.id, Status(ErrorCode::kUnsupported,
                                                                     "this broker launches no sweeps"))));
  answer_from(launch_pool_, peer.hello.id,
              [launch = options_.launch, id = message.id, request = std::move(*request)] {
                const auto launched = launch(request);
                return launched.ok() ? make_message(MessageType::kLaunched, id, *launched)
                                     : error_message(id, launched.status());
              });
}

void BrokerThread::await_job(const Peer& peer, const Message& message) {
  const auto ref = decode<JobRef>(message.body);
  if (!ref.ok()) return invalid(peer, message, ref.status());
  if (!options_.await_job)
    return void(send(peer.hello.id, error_message(message.id, Status(ErrorCode::kUnsupported,
                                                                     "this broker waits for no jobs"))));
  const std::pair<std::string, std::string> open{peer.hello.id, message.id};
  if (!awaited_.insert(open).second) return;  // asked again after a reconnection
  options_.await_job(*ref, [this, inbox = inbox_, open](Result<JobResult> result) {
    // `this` is alive where the task runs: a closed inbox runs none.
    inbox->post([this, open, result = std::move(result)] {
      if (awaited_.erase(open) == 0) return;
      send(open.first, result.ok() ? make_message(MessageType::kJobResult, open.second, *result)
                                   : error_message(open.second, result.status()));
    });
  });
}

void BrokerThread::answer_from(TaskPool& pool, const std::string& peer_id, std::function<Message()> work) {
  pool.submit([this, inbox = inbox_, peer_id, work = std::move(work)] {
    inbox->post([this, peer_id, message = work()] { send(peer_id, message); });
  });
}

void BrokerThread::look_up(const std::string& key, const std::vector<JudgeIdentity>& judges) {
  verdict_pool_.submit([this, inbox = inbox_, store = options_.store, key, judges] {
    auto found = find_verdict(*store, key, judges);
    if (!found.ok())
      spdlog::error("broker: looking for a stored verdict of {}: {}", key, found.status().to_string());
    inbox->post([this, key, verdict = found.ok() ? std::move(*found) : std::nullopt] {
      queue_.looked_up(key, verdict);
    });
  });
}

void BrokerThread::store(const std::string& key, const JudgeIdentity& judge, const Verdict& verdict) {
  verdict_pool_.submit([this, inbox = inbox_, store = options_.store, key, judge, verdict] {
    // Those who wait get the verdict all the same: they keep it in their jobs' records.
    if (const Status status = store_verdict(*store, key, judge, verdict); !status.ok())
      spdlog::error("broker: keeping the verdict of {}: {}", key, status.to_string());
    inbox->post([this, key] { queue_.stored(key); });
  });
}

bool BrokerThread::dispatch(const std::string& profiler, const ProfileRequest& request) {
  return send(profiler, make_message(MessageType::kProfile, {}, request));
}

void BrokerThread::stop_work(const std::string& profiler, const std::string& key, const std::string& reason) {
  send(profiler, make_message(MessageType::kCancelled, {}, ProfileRef{key, reason}));
}

void BrokerThread::acknowledge(const std::string& profiler, const std::string& key) {
  send(profiler, make_message(MessageType::kVerdictAck, {}, ProfileRef{key, {}}));
}

void BrokerThread::answer(const Waiter& waiter, const std::string& key, const Verdict& verdict) {
  send(waiter.peer, make_message(MessageType::kVerdict, waiter.id, VerdictReply{key, verdict}));
}

void BrokerThread::refuse(const Waiter& waiter, const Status& status) {
  send(waiter.peer, error_message(waiter.id, status));
}

}  // namespace fixit

// What tests of the coordinator share: a small sweep with a recipe, and a worker that plays its jobs by a
// fixed script through the real queue and the real store.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/queue/job_queue.h"
#include "core/queue/registry.h"
#include "core/record/event.h"
#include "core/record/frozen_sweep.h"
#include "core/store/store.h"
#include "core/wire/broker_client.h"
#include "core/wire/remote_store.h"

namespace fixit::testing {

inline FrozenSweep small_sweep(const std::string& name) {
  FrozenSweep sweep;
  sweep.sweep.name = name;
  sweep.sweep.models = {"student"};
  sweep.sweep.gpus = {"cpu"};
  sweep.sweep.samples = 2;
  sweep.sweep.turns = 2;
  sweep.sweep.recipe = "tiny";
  PackSelector selector;
  selector.name = "basic";
  selector.use = {"basic"};
  sweep.sweep.packs = {selector};
  for (const char* problem_name : {"gemm", "rmsnorm"}) {
    ProblemSelector wanted;
    wanted.pattern = problem_name;
    sweep.sweep.problems.push_back(wanted);
    FrozenProblem problem;
    problem.name = problem_name;
    sweep.problems.push_back(problem);
  }
  for (const char* model_name : {"student", "teacher"}) {
    FrozenModel model;
    model.config.name = model_name;
    sweep.models.push_back(model);
  }
  sweep.gpus.resize(1);
  sweep.gpus[0].name = "cpu";
  sweep.packs.resize(1);
  sweep.packs[0].name = "basic";
  RecipeConfig recipe;
  recipe.name = "tiny";
  recipe.failures.statuses = {"COMPILE_ERROR"};
  recipe.repair.model = "teacher";
  recipe.rationale.model = "teacher";
  sweep.recipe = recipe;
  return sweep;
}

// Each rollout: a turn that does not compile, then a correct one. Each repair: one correct turn. Each
// rationale: accepted at once. Serves only the kinds it was given.
class FakeWorker {
 public:
  FakeWorker(Redis& redis, BlobStore& store, std::set<JobKind> kinds)
      : queue_(redis), registry_(redis), store_(store), kinds_(std::move(kinds)), thread_([this] {
          run();
        }) {}
  ~FakeWorker() {
    stopping_ = true;
    thread_.join();
  }

 private:
  static constexpr std::chrono::milliseconds kLease{10000};

  void run() {
    while (!stopping_) {
      bool worked = false;
      const auto lanes = queue_.lanes();
      if (lanes.ok()) {
        const auto jobs = queue_.claim(*lanes, 16, "fake worker", kLease);
        if (jobs.ok())
          for (const ClaimedJob& job : *jobs) worked = play(job) || worked;
      }
      if (!worked)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // idle polling, not waiting for luck
    }
  }

  bool play(const ClaimedJob& claimed) {
    const auto payload = decode<JobPayload>(claimed.payload);
    const auto sweep = registry_.get_sweep(claimed.sweep);
    if (!payload.ok() || !sweep.ok() || !kinds_.contains(payload->kind)) {
      (void)queue_.release(std::span(&claimed.lease, 1));
      return false;
    }
    JobAxes axes;
    axes.sweep = claimed.sweep;
    axes.job = claimed.lease.job;
    axes.kind = payload->kind;
    axes.problem = sweep->problems[static_cast<size_t>(payload->problem)].name;
    if (payload->model >= 0) axes.model = sweep->models[static_cast<size_t>(payload->model)].config.name;
    axes.gpu = "cpu";
    if (payload->pack >= 0) axes.pack = sweep->packs[static_cast<size_t>(payload->pack)].name;
    axes.sample = payload->sample;
    std::vector<JobEvent> events;
    if (axes.kind == JobKind::kRationale) {
      events.push_back(rationale(axes, *payload->origin));
    } else {
      if (axes.kind == JobKind::kRollout)
        events.push_back(turn(axes, payload->origin, 0, TurnStatus::kCompileError));
      events.push_back(
          turn(axes, payload->origin, axes.kind == JobKind::kRollout ? 1 : 0, TurnStatus::kCorrect));
    }
    JobEndRecord end;
    end.axes = axes;
    end.origin = payload->origin;
    events.push_back({EventKind::kJobEnd, encode(end)});
    return queue_.finish(claimed.lease, events).ok();
  }

  BlobHash put(const std::string& text) {
    for (int attempt = 0; attempt < 100 && !stopping_; ++attempt)
      if (auto hash = store_.put(text); hash.ok()) return *hash;  // the broker may be changing hands
    return {};
  }

  JobEvent turn(const JobAxes& axes, const std::optional<Origin>& origin, int number, TurnStatus status) {
    TurnRecord record;
    record.axes = axes;
    record.origin = origin;
    record.turn = number;
    record.status = status;
    const std::string label = axes.problem + " " + axes.job + "/" + std::to_string(number);
    record.system = put("system");
    record.task = put("task of " + axes.problem);
    record.reply = put("reply of " + label);
    record.source = put("kernel of " + label + "\n");
    record.feedback = put("feedback on " + label);
    record.usage.prompt = 10;
    record.usage.completion = 5;
    record.cost_usd = 0.25;
    if (status == TurnStatus::kCorrect) {
      Verdict verdict;
      verdict.status = status;
      verdict.isolation = "process";
      verdict.speedup = 1.5;
      verdict.request_key = "key of " + label;
      record.verdict = verdict;
    }
    return {EventKind::kTurn, encode(record)};
  }

  JobEvent rationale(const JobAxes& axes, const Origin& origin) {
    RationaleRecord record;
    record.axes = axes;
    record.origin = origin;
    record.accepted = true;
    record.text = put("because of " + axes.job);
    record.request = put("request of " + axes.job);
    record.reply = record.text;
    return {EventKind::kRationale, encode(record)};
  }

  JobQueue queue_;
  Registry registry_;
  BlobStore& store_;
  const std::set<JobKind> kinds_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// A connection to the leading coordinator's broker, as `role`.
class Peer {
 public:
  Peer(std::unique_ptr<Redis> redis, PeerRole role, const std::string& id) : redis_(std::move(redis)) {
    BrokerClient::Options options;
    options.endpoint = [this]() -> Result<std::string> {
      FIXIT_ASSIGN_OR_RETURN(const LeaderInfo leader, Registry(*redis_).leader());
      if (leader.endpoint.empty()) return Status(ErrorCode::kUnavailable, "the leader has no broker yet");
      return leader.endpoint;
    };
    options.hello.role = role;
    options.hello.id = id;
    options.hello.host = "here";
    options.silence_ms = 3000;
    if (role == PeerRole::kProfiler) {
      ProfilerCapability capability;
      capability.gpu = "cpu";
      capability.device = "a processor";
      capability.evaluator = "evaluator 1";
      capability.isolation = "process";
      options.hello.capability = capability;
    }
    client_ = BrokerClient::start(std::move(options));
    store_ = make_remote_store(*client_, 20000, 1 << 20);
  }

  BrokerClient& client() { return *client_; }
  BlobStore& store() { return *store_; }
  template <typename Body, typename Answer>
  Result<Answer> ask(MessageType type, const Body& body) {
    FIXIT_ASSIGN_OR_RETURN(const Message answer, client_->call(type, encode(body), {}, 20000));
    return decode<Answer>(answer.body);
  }
  Result<Launched> launch(const FrozenSweep& sweep) {
    return ask<LaunchRequest, Launched>(MessageType::kLaunch, LaunchRequest{sweep});
  }

 private:
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<BrokerClient> client_;
  std::unique_ptr<BlobStore> store_;
};

}  // namespace fixit::testing

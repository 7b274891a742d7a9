#include "worker/llm/llm_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "core/base/clock.h"
#include "worker/llm/provider_fault.h"
#include "worker/llm/replay.h"
#include "worker/llm/transfer.h"

namespace fixit {
namespace {

constexpr int64_t kLongestWaitMs = 120'000;  // a longer Retry-After is the caller's to wait for
constexpr int kIdlePollMs = 60'000;
constexpr int kBusyPollMs = 100;  // how late a stall may be noticed

struct Call {
  ChatRequest request;
  std::function<void(ChatOutcome)> done;
  int attempt = 0;  // begun so far
};
using CallPtr = std::shared_ptr<Call>;

// Calls of one model: at most its concurrency are open, the others wait in order.
struct Lane {
  int open = 0;
  std::deque<CallPtr> waiting;
};

struct OpenTransfer {
  CallPtr call;
  std::unique_ptr<Transfer> transfer;
};

class MultiClient final : public LlmClient {
 public:
  explicit MultiClient(CURLM* multi) : multi_(multi), random_(std::random_device{}()) {
    thread_ = std::thread([this] { loop(); });
  }

  ~MultiClient() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    for (const auto& [easy, open] : transfers_) curl_multi_remove_handle(multi_, easy);
    transfers_.clear();
    curl_multi_cleanup(multi_);
  }

  void submit(ChatRequest request, std::function<void(ChatOutcome)> done) override {
    auto call = std::make_shared<Call>(Call{std::move(request), std::move(done), 0});
    {
      const std::lock_guard lock(mutex_);
      inbox_.push_back(std::move(call));
    }
    curl_multi_wakeup(multi_);
  }

 private:
  static int64_t now_ms() { return Clock::system().steady_ms(); }

  void loop() {
    while (take_inbox()) {
      run_timers();
      int running = 0;
      curl_multi_perform(multi_, &running);
      collect_ended();
      end_silent();
      curl_multi_poll(multi_, nullptr, 0, poll_ms(), nullptr);
    }
  }

  bool take_inbox() {
    std::deque<CallPtr> fresh;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return false;
      fresh.swap(inbox_);
    }
    for (CallPtr& call : fresh) {
      Lane& lane = lane_of(*call);
      lane.waiting.push_back(std::move(call));
      fill(lane);
    }
    return true;
  }

  Lane& lane_of(const Call& call) {
    return lanes_[call.request.model.name + "\n" + call.request.model.base_url];
  }

  void fill(Lane& lane) {
    while (!lane.waiting.empty() &&
           lane.open < std::max(1, lane.waiting.front()->request.model.concurrency)) {
      CallPtr call = std::move(lane.waiting.front());
      lane.waiting.pop_front();
      ++lane.open;
      begin(std::move(call));
    }
  }

  // A slot of the lane is taken for the call; finish() or retry() gives it back. Neither is called from here
  // directly, so that a lane full of failing calls is no recursion.
  void begin(CallPtr call) {
    ++call->attempt;
    if (call->request.model.protocol == ModelProtocol::kReplay) {
      const double seconds = std::max(0.0, call->request.model.seconds_per_reply);
      return at(now_ms() + static_cast<int64_t>(seconds * 1000),
                [this, call] { finish(call, replay(call->request)); });
    }
    auto prepared = Transfer::prepare(call->request);
    if (!prepared.ok()) {
      const ChatFailure failure{TurnStatus::kLlmFatal, prepared.status().message(), std::nullopt};
      return at(now_ms(), [this, call, failure] { finish(call, failure); });
    }
    CURL* easy = (*prepared)->handle();
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
      const ChatFailure failure{TurnStatus::kLlmTransient, "libcurl takes no more requests", std::nullopt};
      return at(now_ms(), [this, call, failure] { settle(call, failure); });
    }
    transfers_[easy] = {std::move(call), std::move(prepared).value()};
  }

  void finish(const CallPtr& call, ChatOutcome outcome) {
    Lane& lane = lane_of(*call);
    --lane.open;
    fill(lane);
    call->done(std::move(outcome));
  }

  // Ends the call, or has it tried again after a while, outside of its lane.
  void settle(const CallPtr& call, ChatOutcome outcome) {
    auto* failure = std::get_if<ChatFailure>(&outcome);
    if (failure == nullptr || failure->status != TurnStatus::kLlmTransient)
      return finish(call, std::move(outcome));
    const int most = std::max(1, call->request.model.max_attempts);
    failure->message += fmt::format(" (attempt {} of {})", call->attempt, most);
    const bool too_long = failure->retry_after_ms && *failure->retry_after_ms > kLongestWaitMs;
    if (call->attempt >= most || too_long) return finish(call, std::move(outcome));
    const double uniform = std::uniform_real_distribution<double>(0, 1)(random_);
    const int64_t delay = retry_delay_ms(call->attempt + 1, failure->retry_after_ms, uniform);
    spdlog::info("{}; next attempt in {} ms", failure->message, delay);
    at(now_ms() + delay, [this, call] {
      Lane& lane = lane_of(*call);
      lane.waiting.push_front(call);
      fill(lane);
    });
    Lane& lane = lane_of(*call);
    --lane.open;
    fill(lane);
  }

  void collect_ended() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode ended = message->data.result;
      OpenTransfer open = take(message->easy_handle);
      settle(open.call, open.transfer->outcome(ended));
    }
  }

  void end_silent() {
    const int64_t now = now_ms();
    if (now < next_silence_check_ms_) return;
    next_silence_check_ms_ = now + kBusyPollMs / 2;
    std::vector<CURL*> silent;
    for (const auto& [easy, open] : transfers_)
      if (now > open.transfer->silence_deadline_ms()) silent.push_back(easy);
    for (CURL* easy : silent) {
      OpenTransfer open = take(easy);
      settle(open.call, open.transfer->outcome_of_silence());
    }
  }

  OpenTransfer take(CURL* easy) {
    curl_multi_remove_handle(multi_, easy);
    auto node = transfers_.extract(easy);
    return std::move(node.mapped());
  }

  void at(int64_t when_ms, std::function<void()> action) { timers_.emplace(when_ms, std::move(action)); }

  void run_timers() {
    const int64_t now = now_ms();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const std::function<void()> action = std::move(timers_.extract(timers_.begin()).mapped());
      action();
    }
  }

  int poll_ms() const {
    int64_t wait = transfers_.empty() ? kIdlePollMs : kBusyPollMs;
    if (!timers_.empty()) wait = std::clamp<int64_t>(timers_.begin()->first - now_ms(), 0, wait);
    return static_cast<int>(wait);
  }

  CURLM* const multi_;
  std::mutex mutex_;
  std::deque<CallPtr> inbox_;  // guarded by mutex_
  bool stop_ = false;          // guarded by mutex_
  // The thread's own:
  std::unordered_map<std::string, Lane> lanes_;  // references into it stay valid
  std::unordered_map<CURL*, OpenTransfer> transfers_;
  std::multimap<int64_t, std::function<void()>> timers_;  // steady milliseconds
  int64_t next_silence_check_ms_ = 0;
  std::mt19937_64 random_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<LlmClient> LlmClient::start() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  return std::make_unique<MultiClient>(curl_multi_init());
}

}  // namespace fixit

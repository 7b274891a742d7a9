#include "coordinator/service/leader_term.h"

#include <spdlog/spdlog.h>

namespace fixit {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCollectPeriod{50};  // how long a finished turn may wait when nothing else comes
constexpr milliseconds kReapPeriod{1000};
constexpr milliseconds kChainPeriod{1000};  // besides each change of the journal

Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return Status(ErrorCode::kDenied,
                "cannot create folder " + folder.string() + ": " + error.message() +
                    "; give a writable data folder (FIXIT_DATA, or `data` in fixit.yaml)");
}

}  // namespace

Result<std::unique_ptr<LeaderTerm>> LeaderTerm::start(Options options, const Clock& clock) {
  std::unique_ptr<LeaderTerm> term(new LeaderTerm(std::move(options), clock));
  FIXIT_RETURN_IF_ERROR(term->open());
  term->start_threads();
  FIXIT_RETURN_IF_ERROR(term->start_broker());
  return term;
}

Status LeaderTerm::open() {
  const SiteConfig& site = options_.site;
  for (const auto& folder : {site.store(), site.journal(), site.datasets()})
    FIXIT_RETURN_IF_ERROR(make_folder(folder));
  FIXIT_ASSIGN_OR_RETURN(store_, open_pack_store(site.store()));
  FIXIT_ASSIGN_OR_RETURN(ledger_, Ledger::open(site.journal(), options_.epoch, *store_, clock_));
  FIXIT_ASSIGN_OR_RETURN(work_redis_, Redis::connect(options_.redis));
  FIXIT_ASSIGN_OR_RETURN(collect_redis_, Redis::connect(options_.redis));
  FIXIT_ASSIGN_OR_RETURN(reap_redis_, Redis::connect(options_.redis));
  work_queue_ = std::make_unique<JobQueue>(*work_redis_, options_.retry);
  collect_queue_ = std::make_unique<JobQueue>(*collect_redis_, options_.retry);
  reap_queue_ = std::make_unique<JobQueue>(*reap_redis_, options_.retry);
  work_registry_ = std::make_unique<Registry>(*work_redis_);
  collect_registry_ = std::make_unique<Registry>(*collect_redis_);
  reap_registry_ = std::make_unique<Registry>(*reap_redis_);

  chain_ = std::make_unique<Chain>(*ledger_, *work_queue_, *work_registry_, *store_, clock_,
                                   Chain::Options{site.journal(), site.datasets(), options_.stall_ms});
  launcher_ = std::make_unique<Launcher>(*ledger_, *work_queue_, *work_registry_, *store_, clock_);
  answers_ = std::make_unique<JobAnswers>(*ledger_, site.journal());
  collector_ = std::make_unique<Collector>(*collect_queue_, *collect_registry_, *ledger_, clock_,
                                           Collector::Options{});
  Reaper::Options reaping;
  reaping.lease_ms = static_cast<int64_t>(site.lease_s * 1000);
  reaping.max_queue = site.max_profile_queue;
  reaping.folders = {site.store(), site.journal()};
  reaping.min_free_bytes = options_.min_free_bytes;
  reaper_ = std::make_unique<Reaper>(*reap_redis_, *reap_queue_, *reap_registry_, *ledger_, clock_,
                                     std::move(reaping));
  return {};
}

Status LeaderTerm::start_broker() {
  Broker::Options broker;
  broker.listen = options_.site.listen;
  broker.coordinator = options_.coordinator;
  broker.epoch = options_.epoch;
  broker.silence_ms = static_cast<int64_t>(options_.site.profiler_silence_s * 1000);
  broker.max_queue = options_.site.max_profile_queue;
  broker.store = store_.get();
  broker.clock = &clock_;
  broker.launch = [this](const LaunchRequest& request) { return launcher_->launch(request); };
  broker.await_job = [this](const JobRef& job, JobAnswers::Answer answer) {
    answers_->await(job, std::move(answer));
    chain_ticker_->wake();
  };
  broker.on_view = [this](const BrokerView& view) { reaper_->see(view); };
  FIXIT_ASSIGN_OR_RETURN(broker_, Broker::start(std::move(broker)));
  return {};
}

void LeaderTerm::start_threads() {
  chain_ticker_ = std::make_unique<Ticker>(kChainPeriod, [this] {
    chain_->tick();
    answers_->serve();
    return false;
  });
  ledger_->on_change([this] { chain_ticker_->wake(); });
  collector_ticker_ = std::make_unique<Ticker>(kCollectPeriod, [this] { return collector_->tick(); });
  reaper_ticker_ = std::make_unique<Ticker>(kReapPeriod, [this] {
    reaper_->tick();
    return false;
  });
}

LeaderTerm::~LeaderTerm() {
  if (ledger_) ledger_->close();
  for (Ticker* ticker : {reaper_ticker_.get(), collector_ticker_.get(), chain_ticker_.get()})
    if (ticker) ticker->stop();
  // Answers were called from the chain's thread only: none comes any more, and the broker may go. Its threads
  // may still wake a ticker, so those go last.
  broker_.reset();
}

}  // namespace fixit

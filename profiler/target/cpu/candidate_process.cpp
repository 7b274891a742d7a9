#include "profiler/target/cpu/candidate_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "profiler/target/cpu/call_page.h"
#include "profiler/target/cpu/candidate_fault.h"
#include "profiler/target/cpu/candidate_memory.h"
#include "profiler/target/cpu/instruction_trace.h"

namespace fixit {
namespace {

constexpr int64_t kStartDeadlineMs = 20'000;
constexpr int64_t kSettleNs = 5'000'000;
constexpr int kHandshakes = 31;
constexpr int64_t kSliceNs = 1'000'000;  // how late the end of the process may be noticed

int64_t now_ns(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}
int64_t now_ns() {
  return now_ns(CLOCK_MONOTONIC);
}

// A folder of one file, gone with its owner.
class ObjectFile {
 public:
  static Result<std::unique_ptr<ObjectFile>> create(const std::string& bytes) {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / "fixit-candidate-XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr)
      return Status(ErrorCode::kFull, fmt::format("creating {}: {}", pattern, std::strerror(errno)));
    std::unique_ptr<ObjectFile> file(new ObjectFile(pattern));
    std::ofstream stream(file->path(), std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream) return Status(ErrorCode::kFull, "writing " + file->path());
    return file;
  }
  ObjectFile(const ObjectFile&) = delete;
  ObjectFile& operator=(const ObjectFile&) = delete;
  ~ObjectFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string folder() const { return folder_; }
  std::string path() const { return folder_ + "/candidate.so"; }

 private:
  explicit ObjectFile(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

CallArgument scalar_argument(const ScalarArgument& scalar) {
  CallArgument argument;
  std::visit(
      [&](auto value) {
        using T = decltype(value);
        argument.kind = std::is_floating_point_v<T> ? CallArgument::kFloating : CallArgument::kInteger;
        if constexpr (std::is_same_v<T, double>)
          argument.bits = std::bit_cast<uint64_t>(value);
        else if constexpr (std::is_same_v<T, float>)
          argument.bits = std::bit_cast<uint32_t>(value);
        else
          argument.bits = static_cast<uint64_t>(static_cast<int64_t>(value));
      },
      scalar.value);
  return argument;
}

// Spinning for the reply must not take a core from the candidate.
int64_t spin_ns(const std::vector<int>& cores) {
  cpu_set_t mine;
  if (cores.empty() || sched_getaffinity(0, sizeof mine, &mine) != 0) return 20'000;
  for (const int core : cores)
    if (core >= 0 && core < CPU_SETSIZE) CPU_CLR(core, &mine);
  return CPU_COUNT(&mine) > 0 ? 1'000'000 : 20'000;
}

class Process : public CandidateProcess {
 public:
  explicit Process(const CandidateSpec& spec)
      : object_(spec.object),
        spin_ns_(spin_ns(spec.cores)),
        cores_(spec.cores.empty() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency()))
                                  : static_cast<int>(spec.cores.size())) {}

  Status prepare(const CandidateSpec& spec);
  Status launch(const CandidateSpec& spec);
  Status load();
  Status measure_handshake();

  std::span<std::byte> tensor(size_t argument) override {
    return argument < tensor_of_argument_.size() && tensor_of_argument_[argument] >= 0
               ? tensors_[static_cast<size_t>(tensor_of_argument_[argument])].data()
               : std::span<std::byte>();
  }
  CallOutcome call(int64_t deadline_ms) override { return call(CallRequest::kArm, deadline_ms); }
  std::optional<Fault> check_canaries() override;
  std::optional<std::string> leftover_work() override;
  SandboxLevel level() const override { return sandbox_->level(); }
  int pid() const override { return sandbox_->pid(); }
  int64_t handshake_ns() const override { return handshake_ns_; }
  Result<TraceCounts> call_counting(const std::vector<uint64_t>& offsets, uint64_t cap,
                                    int64_t deadline_ms) override;

 private:
  enum class Wait { kArrived, kEnded, kTimedOut };

  CallPage& page() { return *reinterpret_cast<CallPage*>(page_->bytes().data()); }
  uint32_t send(CallRequest request);
  Wait await(std::atomic<uint32_t>& word, uint32_t value, int64_t deadline_ns);
  bool ended();
  int64_t cpu_ns() const { return now_ns(cpu_clock_); }
  CallOutcome call(CallRequest kind, int64_t deadline_ms);
  CallOutcome not_returned(Wait wait, int64_t deadline_ms);
  Fault explain();

  std::string object_;
  int64_t spin_ns_;
  int cores_;
  std::vector<SharedTensor> tensors_;
  std::vector<int> tensor_of_argument_;
  CandidateLayout layout_;
  std::unique_ptr<SharedMemory> page_;
  std::unique_ptr<ObjectFile> file_;
  std::unique_ptr<SandboxedProcess> sandbox_;
  std::unique_ptr<InstructionTrace> trace_;
  clockid_t cpu_clock_ = 0;
  uint64_t scratch_ = 0;
  uint32_t sequence_ = 0;
  int64_t handshake_ns_ = 0;
  int64_t handshake_cpu_ns_ = 0;
  int64_t settled_cpu_ns_ = 0;  // when the last call was over
  int64_t gap_cpu_ns_ = 0;      // spent between the last two calls
  std::optional<Fault> end_;    // why there is no process any more
};

Status Process::prepare(const CandidateSpec& spec) {
  if (spec.arguments.size() > kMaxArguments)
    return Status(ErrorCode::kUnsupported, fmt::format("{} arguments; at most {} are supported",
                                                       spec.arguments.size(), kMaxArguments));
  if (spec.entry_point.empty() || spec.entry_point.size() >= sizeof(CallPage::entry_point))
    return Status(ErrorCode::kInvalid, "the entry point's name is empty or too long");
  FIXIT_ASSIGN_OR_RETURN(page_, SharedMemory::create("call", round_up(sizeof(CallPage), kPageBytes), true));
  new (page_->bytes().data()) CallPage();
  spec.entry_point.copy(page().entry_point, spec.entry_point.size());
  page().traced = spec.trace ? 1 : 0;
  page().argument_count = static_cast<uint32_t>(spec.arguments.size());
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    tensor_of_argument_.push_back(-1);
    if (const auto* scalar = std::get_if<ScalarArgument>(&spec.arguments[i])) {
      page().arguments[i] = scalar_argument(*scalar);
      continue;
    }
    const auto& wanted = std::get<TensorArgument>(spec.arguments[i]);
    FIXIT_ASSIGN_OR_RETURN(SharedTensor made, SharedTensor::create(wanted.name, wanted.bytes, wanted.output));
    tensor_of_argument_.back() = static_cast<int>(tensors_.size());
    tensors_.push_back(std::move(made));
    CallArgument& argument = page().arguments[i];
    argument.kind = wanted.output ? CallArgument::kOutput : CallArgument::kInput;
    argument.bytes = wanted.bytes;
    argument.mapping_bytes = tensors_.back().mapping_bytes();
  }
  FIXIT_ASSIGN_OR_RETURN(file_, ObjectFile::create(spec.object));
  return Status();
}

Status Process::launch(const CandidateSpec& spec) {
  SandboxSpec sandbox;
  sandbox.argv = {std::filesystem::absolute(spec.runner).lexically_normal().string(), file_->path()};
  sandbox.read_only = {sandbox.argv[0], file_->folder(), "/usr/lib", "/lib", "/lib64", "/etc/ld.so.cache"};
  // Idle OpenMP threads sleep: spinning ones would take cores from the next call and look like leftover work.
  sandbox.environment = {
      {"OMP_NUM_THREADS", std::to_string(cores_)}, {"OMP_WAIT_POLICY", "passive"}, {"OMP_DYNAMIC", "false"}};
  sandbox.descriptors.emplace_back(page_->descriptor(), kPageDescriptor);
  for (size_t i = 0; i < tensors_.size(); ++i)
    sandbox.descriptors.emplace_back(tensors_[i].descriptor(), kPageDescriptor + 1 + static_cast<int>(i));
  if (spec.memory_bytes > 0) {
    // Program, libraries and, for each thread, its stack and its malloc arena's reservation.
    constexpr int64_t kProgram = 256 << 20, kThread = 80 << 20;
    sandbox.memory_bytes = spec.memory_bytes + kProgram + cores_ * kThread;
    for (SharedTensor& one : tensors_)
      sandbox.memory_bytes += static_cast<int64_t>(one.mapping_bytes() + 2 * kPageBytes);
  }
  sandbox.cores = spec.cores;
  sandbox.trace_me = spec.trace;
  auto started = SandboxedProcess::start(sandbox);
  if (!started.ok()) return Status(ErrorCode::kDenied, started.status().message());
  sandbox_ = std::move(*started);
  if (clock_getcpuclockid(sandbox_->pid(), &cpu_clock_) != 0)
    return Status(ErrorCode::kDenied, "no CPU clock of the candidate's process");
  if (!spec.trace) return Status();
  trace_ = std::make_unique<InstructionTrace>(sandbox_->pid());
  return trace_->begin().with_context("tracing the candidate");
}

Status Process::load() {
  const uint32_t number = send(CallRequest::kLoad);
  const Wait wait = await(page().reply, number, now_ns() + kStartDeadlineMs * 1'000'000);
  if (wait == Wait::kEnded)
    return Status(ErrorCode::kInvalid, "loading the object ended its process: " + explain().kind);
  if (wait == Wait::kTimedOut) return Status(ErrorCode::kInvalid, "loading the object did not end");
  file_.reset();
  if (page().load_failed != 0) {
    char words[sizeof(CallPage::text)];
    std::memcpy(words, page().text, sizeof words);
    words[sizeof words - 1] = '\0';
    return Status(page().load_failed == 1 ? ErrorCode::kInvalid : ErrorCode::kDenied, words);
  }
  // From an object without constructors these are still the runner's own words: no candidate code has run.
  layout_.load_base = page().load_base;
  layout_.stack_top = page().stack_top;
  layout_.stack_bytes = page().stack_bytes;
  scratch_ = page().scratch;
  for (size_t i = 0; i < tensor_of_argument_.size(); ++i) {
    if (tensor_of_argument_[i] < 0) continue;
    const SharedTensor& one = tensors_[static_cast<size_t>(tensor_of_argument_[i])];
    layout_.tensors.push_back({one.name(), page().arguments[i].address, one.size(), one.output()});
  }
  page().text[0] = '\0';
  return Status();
}

Status Process::measure_handshake() {
  std::vector<int64_t> wall, cpu;
  for (int i = 0; i < kHandshakes; ++i) {
    const CallOutcome outcome = call(CallRequest::kArmNothing, kStartDeadlineMs);
    if (outcome.kind != CallOutcome::Kind::kReturned)
      return Status(ErrorCode::kDenied, "the runner does not answer: " + outcome.fault->kind);
    wall.push_back(outcome.wall_ns);
    cpu.push_back(outcome.cpu_ns);
  }
  std::sort(wall.begin(), wall.end());
  std::sort(cpu.begin(), cpu.end());
  handshake_ns_ = wall[kHandshakes / 2];
  handshake_cpu_ns_ = cpu[kHandshakes / 2];
  return Status();
}

uint32_t Process::send(CallRequest request) {
  const uint32_t number = ++sequence_ << 3 | static_cast<uint32_t>(request);
  page().request.store(number, std::memory_order_seq_cst);
  if (request != CallRequest::kGo || page().parked.load(std::memory_order_seq_cst) != 0)
    futex_wake(page().request);
  return number;
}

bool Process::ended() {
  if (trace_ && trace_->ended()) return true;
  if (trace_) return false;
  return sandbox_->wait(0).ok();
}

Process::Wait Process::await(std::atomic<uint32_t>& word, uint32_t value, int64_t deadline_ns) {
  const int64_t spin_until = std::min(deadline_ns, now_ns() + spin_ns_);
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (word.load(std::memory_order_acquire) == value) return Wait::kArrived;
      __builtin_ia32_pause();
    }
    const bool stopped = trace_ && trace_->serve();
    const int64_t now = now_ns();
    if (now < spin_until && !(trace_ && trace_->ended())) continue;
    if (ended()) return word.load(std::memory_order_acquire) == value ? Wait::kArrived : Wait::kEnded;
    if (now >= deadline_ns) return Wait::kTimedOut;
    if (stopped) continue;  // a traced thread that was just continued stops again in microseconds
    const uint32_t seen = word.load(std::memory_order_acquire);
    const int64_t slice = std::min(trace_ ? int64_t{20'000} : kSliceNs, deadline_ns - now);
    if (seen != value) futex_wait(word, seen, slice);
  }
}

CallOutcome Process::call(CallRequest kind, int64_t deadline_ms) {
  CallOutcome outcome;
  if (end_) {
    outcome.kind = CallOutcome::Kind::kFault;
    outcome.fault = Fault{"no process", "", "it ended in an earlier call: " + end_->kind};
    return outcome;
  }
  gap_cpu_ns_ = std::max<int64_t>(0, cpu_ns() - settled_cpu_ns_);
  // Waking the runner is not part of the call: it answers that it is awake, and then spins for the start.
  const uint32_t armed = send(kind);
  Wait wait = await(page().reply, armed, now_ns() + kStartDeadlineMs * 1'000'000);
  if (wait != Wait::kArrived) return not_returned(wait, kStartDeadlineMs);
  const int64_t cpu_before = cpu_ns();
  const int64_t before = now_ns();
  const uint32_t go = send(CallRequest::kGo);
  wait = await(page().reply, go, before + deadline_ms * 1'000'000);
  const int64_t wall = now_ns() - before;
  if (wait != Wait::kArrived) return not_returned(wait, deadline_ms);
  await(page().settled, go, now_ns() + kSettleNs);
  settled_cpu_ns_ = cpu_ns();
  outcome.cpu_ns = std::max<int64_t>(0, settled_cpu_ns_ - cpu_before - handshake_cpu_ns_);
  outcome.wall_ns = std::max({int64_t{0}, wall - handshake_ns_, outcome.cpu_ns / cores_});
  return outcome;
}

CallOutcome Process::not_returned(Wait wait, int64_t deadline_ms) {
  CallOutcome outcome;
  if (wait == Wait::kTimedOut) {
    sandbox_->kill();
    outcome.kind = CallOutcome::Kind::kTimeout;
    outcome.fault = Fault{"hang", "", fmt::format("the call did not return within {} ms", deadline_ms)};
  } else {
    outcome.kind = CallOutcome::Kind::kFault;
    outcome.fault = explain();
  }
  end_ = outcome.fault;
  return outcome;
}

Fault Process::explain() {
  const auto status = sandbox_->wait(1000);
  if (!status.ok()) return Fault{"ended", "", status.status().message()};
  FaultHint hint;
  std::memcpy(&hint, &page().hint, sizeof hint);
  char words[sizeof(CallPage::text)];
  std::memcpy(words, page().text, sizeof words);
  words[sizeof words - 1] = '\0';
  std::string text = words;
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < 0x20 || static_cast<unsigned char>(letter) >= 0x7f) letter = '?';
  return explain_end(*status, layout_, hint, text, object_);
}

std::optional<Fault> Process::check_canaries() {
  for (SharedTensor& one : tensors_) {
    std::string detail;
    if (const auto kind = one.take_canary_damage(detail)) return Fault{*kind, "", detail};
  }
  return std::nullopt;
}

// The state letter of each thread but the first, from /proc: "R" is running.
std::string running_thread(int pid) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    const std::string tid = entry.path().filename();
    if (tid == std::to_string(pid)) continue;
    std::ifstream file(entry.path() / "stat");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    const size_t state = line.rfind(')');  // the name before it may hold anything
    if (state != std::string::npos && state + 2 < line.size() && line[state + 2] == 'R') return tid;
  }
  return "";
}

std::optional<std::string> Process::leftover_work() {
  // Parking the runner and a pool of OpenMP threads takes microseconds each.
  const int64_t allowed = 200'000 + 50'000 * cores_;
  if (end_) return std::nullopt;
  if (gap_cpu_ns_ > allowed)
    return fmt::format("{} us of CPU time between the two latest calls", gap_cpu_ns_ / 1000);
  const int64_t until = now_ns() + 3'000'000;
  std::string running;
  do {
    if (trace_) trace_->serve();
    const int64_t spent = cpu_ns() - settled_cpu_ns_;
    if (spent > allowed) return fmt::format("{} us of CPU time after the call returned", spent / 1000);
    running = running_thread(pid());
    if (running.empty()) return std::nullopt;
    timespec pause = {0, 100'000};
    nanosleep(&pause, nullptr);
  } while (now_ns() < until);
  return fmt::format("thread {} still runs after the call returned", running);
}

Result<CandidateProcess::TraceCounts> Process::call_counting(const std::vector<uint64_t>& offsets,
                                                             uint64_t cap, int64_t deadline_ms) {
  if (!trace_) return Status(ErrorCode::kInvalid, "the process was not started for tracing");
  if (end_) return Status(ErrorCode::kUnavailable, "the process has ended: " + end_->kind);
  if (cap == 0) return Status(ErrorCode::kInvalid, "cap must be positive");
  FIXIT_RETURN_IF_ERROR(trace_->insert(object_, layout_.load_base, offsets, scratch_, kScratchBytes, cap));
  TraceCounts result;
  result.outcome = call(deadline_ms);
  result.executed = trace_->counts();
  result.capped = trace_->capped();
  if (!end_) FIXIT_RETURN_IF_ERROR(trace_->remove_all());
  return result;
}

}  // namespace

Result<std::unique_ptr<CandidateProcess>> CandidateProcess::start(const CandidateSpec& spec) {
  auto process = std::make_unique<Process>(spec);
  FIXIT_RETURN_IF_ERROR(process->prepare(spec));
  FIXIT_RETURN_IF_ERROR(process->launch(spec));
  FIXIT_RETURN_IF_ERROR(process->load());
  FIXIT_RETURN_IF_ERROR(process->measure_handshake());
  return std::unique_ptr<CandidateProcess>(std::move(process));
}

}  // namespace fixit

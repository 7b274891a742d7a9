// Candidates that compute, fail and cheat, each compiled by the real compiler and run in the real sandbox.
#include "profiler/target/cpu/candidate_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "profiler/target/cpu/object_check.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Kind = CallOutcome::Kind;

constexpr size_t kElements = 1024;  // 4096 bytes: the tensors end at a page's end, with no slack

const std::string kAdd =
    "extern \"C\" void run(const float* a, const float* b, float* c, long n) { for (long i = 0; i < n; ++i) "
    "c[i] = a[i] + "
    "b[i]; }";
std::string with_body(const std::string& body, const std::string& before = "") {
  return before +
         "\nextern \"C\" void run(float* a, float* b, float* c, long n) { (void)a; (void)b; (void)c; "
         "(void)n; " +
         body + " }";
}

std::string compile(const std::string& source, const std::string& flags) {
  char pattern[] = "/tmp/fixit-candidate-test-XXXXXX";
  const fs::path folder = mkdtemp(pattern);
  std::ofstream(folder / "kernel.cpp") << source;
  const std::string command = "cd " + folder.string() + " && g++ -O2 -w -std=c++20 -shared -fPIC " + flags +
                              " -o kernel.so kernel.cpp";
  EXPECT_EQ(system(command.c_str()), 0) << source;
  std::ifstream file(folder / "kernel.so", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  fs::remove_all(folder);
  return bytes;
}

CandidateSpec spec_for(std::string object, size_t elements = kElements, bool trace = false) {
  CandidateSpec spec;
  spec.object = std::move(object);
  spec.arguments = {TensorArgument{"A", elements * 4, false}, TensorArgument{"B", elements * 4, false},
                    TensorArgument{"C", elements * 4, true},
                    ScalarArgument{"n", static_cast<int64_t>(elements)}};
  spec.memory_bytes = 256 << 20;
  spec.trace = trace;
  spec.runner = fs::path(FIXIT_BINARY_DIR) / "fixit-cpu-runner";
  return spec;
}

class Candidate {
 public:
  explicit Candidate(const std::string& source, const std::string& flags = "", size_t elements = kElements,
                     bool trace = false)
      : object(compile(source, flags)) {
    auto started = CandidateProcess::start(spec_for(object, elements, trace));
    EXPECT_TRUE(started.ok()) << started.status().to_string();
    if (!started.ok()) return;
    process = std::move(*started);
    for (size_t i = 0; i < elements; ++i) {
      floats(0)[i] = static_cast<float>(i);
      floats(1)[i] = 2;
      floats(2)[i] = -1;
    }
  }
  float* floats(size_t argument) { return reinterpret_cast<float*>(process->tensor(argument).data()); }
  // The one fault that a call of this candidate must end with.
  Fault fault(int64_t deadline_ms = 20'000) {
    if (!process) return {};
    const CallOutcome outcome = process->call(deadline_ms);
    EXPECT_EQ(outcome.kind, Kind::kFault);
    return outcome.fault.value_or(Fault{});
  }

  std::string object;
  std::unique_ptr<CandidateProcess> process;
};

Fault fault_of(const std::string& body, const std::string& before = "", const std::string& flags = "") {
  return Candidate(with_body(body, before), flags).fault();
}

TEST(CandidateProcess, ComputesOnFreshDataInEveryCall) {
  for (const char* level : {"seccomp", ""}) {
    setenv("FIXIT_SANDBOX", level, 1);
    Candidate candidate(kAdd);
    unsetenv("FIXIT_SANDBOX");
    ASSERT_TRUE(candidate.process);
    for (int round = 0; round < 5; ++round) {
      candidate.floats(1)[7] = static_cast<float>(round);
      const CallOutcome outcome = candidate.process->call(10'000);
      ASSERT_EQ(outcome.kind, Kind::kReturned) << outcome.fault->kind << outcome.fault->detail;
      EXPECT_EQ(candidate.floats(2)[7], static_cast<float>(7 + round));
      EXPECT_EQ(candidate.floats(2)[kElements - 1], static_cast<float>(kElements + 1));
      EXPECT_FALSE(candidate.process->check_canaries().has_value());
      const auto leftover = candidate.process->leftover_work();
      EXPECT_FALSE(leftover.has_value()) << *leftover;
    }
  }
}

TEST(CandidateProcess, PassesEveryKindOfScalarInRegistersAndOnTheStack) {
  CandidateSpec spec;
  spec.object = compile(
      "extern \"C\" void run(double* o, float f, double d, int i, bool b, long l, float f2, int i2, int i3, "
      "double d3,"
      " float s1, float s2, float s3, float s4, float s5, int last, float lastf) {"
      " o[0]=f; o[1]=d; o[2]=i; o[3]=b; o[4]=l; o[5]=f2; o[6]=i2; o[7]=i3; o[8]=d3; o[9]=s1; o[10]=s5; "
      "o[11]=last; "
      "o[12]=lastf; }",
      "");
  spec.arguments = {
      TensorArgument{"o", 13 * 8, true}, ScalarArgument{"", 1.5f},       ScalarArgument{"", 2.25},
      ScalarArgument{"", int32_t{-3}},   ScalarArgument{"", true},       ScalarArgument{"", int64_t{1} << 40},
      ScalarArgument{"", 5.5f},          ScalarArgument{"", int32_t{6}}, ScalarArgument{"", int32_t{-7}},
      ScalarArgument{"", 8.75},          ScalarArgument{"", 9.f},        ScalarArgument{"", 0.f},
      ScalarArgument{"", 0.f},           ScalarArgument{"", 0.f},        ScalarArgument{"", 10.f},
      ScalarArgument{"", int32_t{-11}},  ScalarArgument{"", 12.5f}};
  spec.runner = fs::path(FIXIT_BINARY_DIR) / "fixit-cpu-runner";
  auto process = CandidateProcess::start(spec);
  ASSERT_TRUE(process.ok()) << process.status().to_string();
  ASSERT_EQ((*process)->call(10'000).kind, Kind::kReturned);
  const double expected[] = {1.5, 2.25, -3, 1, 1099511627776.0, 5.5, 6, -7, 8.75, 9, 10, -11, 12.5};
  EXPECT_EQ(memcmp((*process)->tensor(0).data(), expected, sizeof expected), 0);
  EXPECT_TRUE((*process)->tensor(1).empty());
}

TEST(CandidateProcess, SaysWhyAnObjectDoesNotLoad) {
  const auto missing = CandidateProcess::start(spec_for(compile("extern \"C\" void other() {}", "")));
  EXPECT_EQ(missing.status().code(), ErrorCode::kInvalid);
  EXPECT_THAT(missing.status().message(), HasSubstr("undefined symbol: run"));
  const auto junk = CandidateProcess::start(spec_for("no object at all"));
  EXPECT_EQ(junk.status().code(), ErrorCode::kInvalid);
}

TEST(CandidateProcess, OverrunsFaultAtTheTensorsEnd) {
  const Fault write = fault_of("c[n + 1] = 1;");
  EXPECT_EQ(write.kind, "segmentation fault");
  EXPECT_THAT(write.detail, HasSubstr("write 4 bytes past the end of output C"));
  EXPECT_THAT(write.where, HasSubstr("run+0x"));
  EXPECT_THAT(fault_of("c[0] = a[n];").detail, HasSubstr("read right past the end of input A"));
}

TEST(CandidateProcess, WritesBesideATensorAreSeenInItsCanary) {
  const struct {
    const char *body, *kind;
  } kCases[] = {{"((volatile float*)c)[-1] = 1;", "write before the start of C"},
                {"((volatile float*)c)[n] = 1;", "write past the end of C"}};
  for (const auto& one : kCases) {
    Candidate candidate(with_body(one.body), "", 100);  // 400 bytes: slack on both sides
    ASSERT_EQ(candidate.process->call(10'000).kind, Kind::kReturned);
    const auto fault = candidate.process->check_canaries();
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->kind, one.kind);
    EXPECT_FALSE(candidate.process->check_canaries().has_value());  // restored for the next call
  }
}

TEST(CandidateProcess, InputsCannotBeWritten) {
  const Fault fault = fault_of("b[3] = 1;");
  EXPECT_EQ(fault.kind, "segmentation fault");
  EXPECT_THAT(fault.detail, HasSubstr("write to read-only input B at byte 12"));
  const std::string protect =
      "long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(10), \"D\"((long)b & -4096), \"S\"(4096), "
      "\"d\"(3) : \"rcx\", "
      "\"r11\", \"memory\"); b[3] = 1;";
  EXPECT_EQ(fault_of(protect).kind, "segmentation fault");
}

TEST(CandidateProcess, NamesOtherEnds) {
  EXPECT_EQ(fault_of("exit(3);", "#include <stdlib.h>").kind, "exit(3)");
  EXPECT_EQ(fault_of("abort();", "#include <stdlib.h>").kind, "abort");
  EXPECT_EQ(fault_of("__builtin_trap();").kind, "illegal instruction");
  EXPECT_EQ(fault_of("volatile long z = 0; c[0] = n / z;").kind, "arithmetic exception");
  const Fault null = fault_of("*(volatile int*)8 = 1;");
  EXPECT_THAT(null.detail, HasSubstr("null pointer"));
  const Fault thrown = fault_of("throw std::runtime_error(\"bad tile\");", "#include <stdexcept>");
  EXPECT_EQ(thrown.kind, "uncaught exception");
  EXPECT_EQ(thrown.detail, "bad tile");
}

TEST(CandidateProcess, TellsAStackOverflowFromOtherFaults) {
  const Fault fault = fault_of("c[0] = deep(n);",
                               "static int deep(volatile long n) { volatile char big[1000]; big[n % 1000] = "
                               "n; return deep(n + 1) + big[1]; }",
                               "-O0");
  EXPECT_EQ(fault.kind, "stack overflow");
}

TEST(CandidateProcess, EndsACallAtItsDeadline) {
  Candidate candidate(with_body("for (volatile long i = 0;; ++i) {}"));
  const auto before = std::chrono::steady_clock::now();
  const CallOutcome outcome = candidate.process->call(200);
  EXPECT_EQ(outcome.kind, Kind::kTimeout);
  EXPECT_EQ(outcome.fault->kind, "hang");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
  EXPECT_EQ(candidate.process->call(200).fault->kind, "no process");
}

TEST(CandidateProcess, ForbiddenSystemCallsEndTheProcessAndAreNamed) {
  const auto call = [](int number) {
    return "long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(" + std::to_string(number) +
           "), \"D\"(2), \"S\"(1), \"d\"(0) : \"rcx\", \"r11\", \"memory\"); c[0] = r;";
  };
  EXPECT_EQ(fault_of(call(41)).kind, "forbidden system call socket");
  EXPECT_EQ(fault_of(call(57)).kind, "forbidden system call fork");
  EXPECT_EQ(fault_of(call(59)).kind, "forbidden system call execve");
  EXPECT_EQ(fault_of(call(101)).kind, "forbidden system call ptrace");
  Candidate opens(with_body(call(2)));  // harmless: fails, and the kernel may go on
  ASSERT_EQ(opens.process->call(10'000).kind, Kind::kReturned);
  EXPECT_EQ(opens.floats(2)[0], -1);  // EPERM
}

TEST(CandidateProcess, FindsWorkThatOutlivesTheCall) {
  Candidate spinner(
      with_body("std::thread([] { for (volatile long i = 0;; ++i) {} }).detach();", "#include <thread>"));
  ASSERT_EQ(spinner.process->call(10'000).kind, Kind::kReturned);
  EXPECT_TRUE(spinner.process->leftover_work().has_value());

  // One that works only while the supervisor prepares the next call is seen at that call.
  Candidate lurker(
      with_body("if (!started) { started = true; std::thread([] { for (;;) { "
                "std::this_thread::sleep_for(std::chrono::microseconds(50)); for (volatile int i = 0; i < "
                "100000; ++i) {} } }).detach(); }",
                "#include <thread>\n#include <chrono>\nstatic bool started;"));
  ASSERT_EQ(lurker.process->call(10'000).kind, Kind::kReturned);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the gap itself, not a synchronisation
  ASSERT_EQ(lurker.process->call(10'000).kind, Kind::kReturned);
  EXPECT_TRUE(lurker.process->leftover_work().has_value());
}

TEST(CandidateProcess, SleepingPoolsAreNoLeftoverWork) {
  Candidate candidate(
      with_body(
          "_Pragma(\"omp parallel for num_threads(4)\") for (long i = 0; i < n; ++i) c[i] = a[i] * b[i];"),
      "-fopenmp");
  for (int round = 0; round < 3; ++round) {
    const CallOutcome outcome = candidate.process->call(10'000);
    ASSERT_EQ(outcome.kind, Kind::kReturned) << outcome.fault->kind << ": " << outcome.fault->detail;
    EXPECT_EQ(candidate.floats(2)[5], 10);
    const auto leftover = candidate.process->leftover_work();
    EXPECT_FALSE(leftover.has_value()) << *leftover;
  }
}

TEST(CandidateProcess, TimesFromOutside) {
  // A candidate's own clock functions, however wrong, are nobody's business.
  Candidate candidate(with_body(
      "volatile float x = 0; for (long i = 0; i < 20000000; ++i) x = x + 1; c[0] = x;",
      "#include <time.h>\nextern \"C\" int clock_gettime(clockid_t, timespec* t) { *t = {}; return 0; }"));
  const CallOutcome outcome = candidate.process->call(20'000);
  ASSERT_EQ(outcome.kind, Kind::kReturned);
  EXPECT_GT(outcome.wall_ns, 5'000'000);
  EXPECT_GT(outcome.cpu_ns, 5'000'000);
  EXPECT_LE(outcome.cpu_ns, outcome.wall_ns * 2);
}

TEST(CandidateProcess, HandshakeIsSmallAndTakenOff) {
  Candidate candidate(with_body(""));
  EXPECT_GT(candidate.process->handshake_ns(), 0);
  EXPECT_LT(candidate.process->handshake_ns(), 1'000'000'000);  // nanoseconds; a busy machine takes its time
  RecordProperty("handshake_ns", static_cast<int>(candidate.process->handshake_ns()));
}

TEST(CandidateProcess, LeavesNothingBehind) {
  const std::string object = compile(kAdd, "");
  const auto descriptors = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  std::vector<int> pids;
  { auto warm = CandidateProcess::start(spec_for(object)); }
  const auto before = descriptors();
  const auto began = std::chrono::steady_clock::now();
  for (int round = 0; round < 20; ++round) {
    auto process = CandidateProcess::start(spec_for(object));
    ASSERT_TRUE(process.ok()) << process.status().to_string();
    pids.push_back((*process)->pid());
  }
  const auto took = std::chrono::steady_clock::now() - began;
  RecordProperty("start_us",
                 static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(took).count() / 20));
  EXPECT_EQ(descriptors(), before);
  for (const int pid : pids) EXPECT_NE(kill(pid, 0), 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child of ours is left, running or not
}

std::vector<uint64_t> fma_offsets(const std::string& object) {
  std::vector<uint64_t> offsets;
  const auto sites = find_instructions(object, "fma");
  EXPECT_TRUE(sites.ok()) << sites.status().to_string();
  if (sites.ok())
    for (const CodeSite& site : *sites) offsets.push_back(site.offset);
  return offsets;
}

// One scalar FMA an element, and one that reads a constant relative to the instruction pointer.
const std::string kFma = with_body(
    "for (long i = 0; i < n; ++i) { float x = a[i], y = b[i]; asm volatile(\"vfmadd231ss %1, %1, %0\" : "
    "\"+x\"(x) : "
    "\"x\"(y)); asm volatile(\"vfmadd132ss three(%%rip), %1, %0\" : \"+x\"(x) : \"x\"(y)); c[i] = x; }",
    "asm(\".section .rodata\\n.align 4\\nthree: .float 3\\n.text\");");

TEST(InstructionProof, CountsExactlyAndLeavesTheResultRight) {
  Candidate candidate(kFma, "-mfma", kElements, true);
  ASSERT_TRUE(candidate.process);
  const auto offsets = fma_offsets(candidate.object);
  ASSERT_EQ(offsets.size(), 2u);
  const auto counts = candidate.process->call_counting(offsets, 1'000'000, 20'000);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  ASSERT_EQ(counts->outcome.kind, Kind::kReturned)
      << counts->outcome.fault->kind << counts->outcome.fault->detail;
  EXPECT_EQ(counts->executed, (std::vector<uint64_t>{kElements, kElements}));
  EXPECT_FALSE(counts->capped);
  EXPECT_EQ(candidate.floats(2)[5], (5 + 4) * 3 + 2);
  EXPECT_EQ(candidate.process->call(10'000).kind, Kind::kReturned);  // goes on without breakpoints
}

TEST(InstructionProof, StopsCountingAtTheCap) {
  Candidate candidate(kFma, "-mfma", kElements, true);
  const auto counts = candidate.process->call_counting(fma_offsets(candidate.object), 10, 20'000);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  EXPECT_EQ(counts->outcome.kind, Kind::kReturned);
  EXPECT_EQ(counts->executed, (std::vector<uint64_t>{10, 10}));
  EXPECT_TRUE(counts->capped);
  EXPECT_EQ(candidate.floats(2)[kElements - 1], (kElements - 1 + 4) * 3 + 2);
}

TEST(InstructionProof, CountsInEveryThread) {
  Candidate candidate(
      with_body(
          "auto half = [=](long from, long to) { for (long i = from; i < to; ++i) { float x = a[i]; asm "
          "volatile(\"vfmadd231ss %1, %1, %0\" : \"+x\"(x) : \"x\"(b[i])); c[i] = x; } };"
          "std::thread t(half, 0, n / 2); half(n / 2, n); t.join();",
          "#include <thread>"),
      "-mfma", kElements, true);
  const auto offsets = fma_offsets(candidate.object);
  const auto counts = candidate.process->call_counting(offsets, 1'000'000, 20'000);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  ASSERT_EQ(counts->outcome.kind, Kind::kReturned);
  uint64_t total = 0;
  for (const uint64_t count : counts->executed) total += count;
  EXPECT_EQ(total, kElements);
  EXPECT_EQ(candidate.floats(2)[7], 11);
}

TEST(InstructionProof, CountsNothingWhereTheInstructionIsNotReached) {
  Candidate candidate(
      with_body(
          "if (n < 0) { float x = 1; asm volatile(\"vfmadd231ss %0, %0, %0\" : \"+x\"(x)); c[0] = x; }"),
      "-mfma", kElements, true);
  const auto offsets = fma_offsets(candidate.object);
  ASSERT_EQ(offsets.size(), 1u);
  const auto counts = candidate.process->call_counting(offsets, 100, 20'000);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->executed[0], 0u);
}

TEST(InstructionProof, SurvivesFaultsAndHangs) {
  Candidate faulty(with_body("c[n] = 1;"), "", kElements, true);
  const auto counts = faulty.process->call_counting({}, 10, 20'000);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  EXPECT_EQ(counts->outcome.fault->kind, "segmentation fault");
  Candidate hangs(
      with_body("std::thread t([] { for (volatile long i = 0;; ++i) {} }); t.join();", "#include <thread>"),
      "", kElements, true);
  EXPECT_EQ(hangs.process->call_counting({}, 10, 200)->outcome.kind, Kind::kTimeout);
}

TEST(InstructionProof, RefusesWhatItCannotCount) {
  Candidate untraced(kFma, "-mfma");
  EXPECT_EQ(untraced.process->call_counting({}, 10, 1000).status().code(), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace fixit

// fixit-cpu-runner OBJECT: the trusted stub inside a candidate's sandbox. It maps the tensors, loads the
// object, locks itself down and serves calls until it is killed. Not for people: candidate_process.cpp starts
// it with a CallPage on descriptor 3 and the tensors after it.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <exception>

#include "core/sandbox/sandbox.h"
#include "profiler/target/cpu/call_page.h"

namespace fixit {
namespace {

CallPage* page = nullptr;
alignas(16) char signal_stack[64 << 10];

template <size_t size>
void put_text(char (&target)[size], const char* text) {
  strncpy(target, text, size - 1);
  target[size - 1] = '\0';
}

void answer(uint32_t number) {
  page->reply.store(number, std::memory_order_seq_cst);
  futex_wake(page->reply);
}

[[noreturn]] void fail_load(uint32_t number, int kind, const char* text) {
  put_text(page->text, text);
  page->load_failed = kind;
  answer(number);
  for (;;) pause();  // the supervisor reads the words and kills us
}

// Each handler runs once (SA_RESETHAND): it notes what it saw, and the fault then repeats with its default
// action, so the supervisor sees the true signal whatever became of the note.
void on_fault(int number, siginfo_t* info, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  FaultHint& hint = page->hint;
  hint.address =
      number == SIGSYS ? static_cast<uint64_t>(info->si_syscall) : reinterpret_cast<uint64_t>(info->si_addr);
  hint.write = (registers[REG_ERR] & 2) != 0;
  hint.instruction = static_cast<uint64_t>(registers[REG_RIP]);
  hint.stack = static_cast<uint64_t>(registers[REG_RSP]);
  hint.signal = number;
  // May itself fault where the stack is gone; what matters is written by then.
  const auto* words = reinterpret_cast<const volatile uint64_t*>(hint.stack);
  if (number != SIGSYS) {
    for (size_t i = 0; i < std::size(hint.stack_words); ++i) hint.stack_words[i] = words[i];
    return;
  }
  // A refused system call does not repeat by itself.
  syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), SIGSYS);
}

void install_handlers() {
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS})
    sigaction(number, &action, nullptr);
}

bool map_tensors() {
  int descriptor = kPageDescriptor + 1;
  for (uint32_t i = 0; i < page->argument_count; ++i) {
    CallArgument& argument = page->arguments[i];
    if (argument.kind != CallArgument::kInput && argument.kind != CallArgument::kOutput) continue;
    // An unmapped page before and after: what runs over the end faults at once.
    auto* reserved = static_cast<char*>(mmap(nullptr, argument.mapping_bytes + 2 * kPageBytes, PROT_NONE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (reserved == MAP_FAILED) return false;
    const int protection = argument.kind == CallArgument::kOutput ? PROT_READ | PROT_WRITE : PROT_READ;
    void* mapped = mmap(reserved + kPageBytes, argument.mapping_bytes, protection,
                        MAP_SHARED | MAP_FIXED | MAP_POPULATE, descriptor++, 0);
    if (mapped == MAP_FAILED) return false;
    argument.address = reinterpret_cast<uint64_t>(mapped) + tensor_offset(argument.bytes);
  }
  return true;
}

// The System V ABI fills integer and floating registers apart, and puts what is left on the stack in order,
// eight bytes each. So one signature with every register and some stack calls any function of such arguments.
struct Registers {
  uint64_t integer[6] = {};
  double floating[8] = {};
  uint64_t stack[32] = {};
};
using AnyFunction = void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double,
                             double, double, double, double, double, double, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

Registers arrange_arguments() {
  Registers result;
  size_t integers = 0, floats = 0, stacked = 0;
  for (uint32_t i = 0; i < page->argument_count; ++i) {
    const CallArgument& argument = page->arguments[i];
    const bool scalar = argument.kind == CallArgument::kInteger || argument.kind == CallArgument::kFloating;
    const uint64_t bits = scalar ? argument.bits : argument.address;
    if (argument.kind == CallArgument::kFloating && floats < 8)
      result.floating[floats++] = std::bit_cast<double>(bits);
    else if (argument.kind != CallArgument::kFloating && integers < 6)
      result.integer[integers++] = bits;
    else if (stacked < 32)
      result.stack[stacked++] = bits;
  }
  return result;
}

void call(AnyFunction function, const Registers& with) {
  const auto& i = with.integer;
  const auto& f = with.floating;
  const auto& s = with.stack;
  function(i[0], i[1], i[2], i[3], i[4], i[5], f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], s[0], s[1],
           s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13], s[14], s[15], s[16],
           s[17], s[18], s[19], s[20], s[21], s[22], s[23], s[24], s[25], s[26], s[27], s[28], s[29], s[30],
           s[31]);
}

void nothing(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double, double,
             double, double, double, double, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
             uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {}

// Reading its own clock makes the kernel book the running thread's time, which the supervisor then reads from
// outside. Otherwise that would lag by up to a scheduler tick.
void book_cpu_time() {
  timespec ignored = {};
  syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ignored);
}

uint32_t await_request(uint32_t last, int spins) {
  for (;;) {
    for (int i = 0; i < spins; ++i) {
      const uint32_t now = page->request.load(std::memory_order_acquire);
      if (now != last) return now;
      __builtin_ia32_pause();
    }
    page->parked.store(1, std::memory_order_seq_cst);
    if (page->request.load(std::memory_order_seq_cst) == last) futex_wait(page->request, last, -1);
    page->parked.store(0, std::memory_order_seq_cst);
  }
}

// Anonymous memory near the object, so that a copied instruction still reaches its data by a 32-bit
// displacement.
uint64_t map_scratch(uint64_t load_base) {
  void* mapped = mmap(reinterpret_cast<void*>(load_base - 4 * kScratchBytes), kScratchBytes,
                      PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(mapped);
}

AnyFunction load(uint32_t number, const char* path) {
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) fail_load(number, 1, dlerror());
  void* function = dlsym(object, page->entry_point);
  if (function == nullptr) fail_load(number, 1, dlerror());
  link_map* map = nullptr;
  if (dlinfo(object, RTLD_DI_LINKMAP, &map) != 0) fail_load(number, 1, dlerror());
  page->load_base = map->l_addr;
  if (page->traced != 0) page->scratch = map_scratch(map->l_addr);
  // The C library sets up its thread signals with the first thread; after the lock-down it could not.
  pthread_t thread;
  if (pthread_create(
          &thread, nullptr, [](void* nil) { return nil; }, nullptr) == 0)
    pthread_join(thread, nullptr);
  const Status locked = lock_down_after_load();
  if (!locked.ok()) fail_load(number, 2, locked.message().c_str());
  return reinterpret_cast<AnyFunction>(function);
}

void call_and_explain(AnyFunction function, const Registers& arguments) {
  try {
    call(function, arguments);
  } catch (const std::exception& error) {
    put_text(page->text, error.what());
    std::abort();
  } catch (...) {
    put_text(page->text, "an exception that is no std::exception");
    std::abort();
  }
}

[[noreturn]] void serve(uint32_t last, AnyFunction function) {
  constexpr int kNoSpin = 1,
                kArmedSpins = 50'000;  // about 2 ms: the supervisor only reads two clocks meanwhile
  const Registers arguments = arrange_arguments();
  for (;;) {
    const uint32_t armed = await_request(last, kNoSpin);
    book_cpu_time();
    answer(armed);
    const uint32_t go = await_request(armed, kArmedSpins);
    const bool real = (armed & 7) == static_cast<uint32_t>(CallRequest::kArm);
    call_and_explain(real ? function : nothing, arguments);
    page->reply.store(go, std::memory_order_seq_cst);
    futex_wake(page->reply);
    book_cpu_time();
    page->settled.store(go, std::memory_order_release);
    last = go;
  }
}

int run(const char* path) {
  page = static_cast<CallPage*>(
      mmap(nullptr, sizeof(CallPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, kPageDescriptor, 0));
  if (page == MAP_FAILED) return 1;
  rlimit stack = {};
  getrlimit(RLIMIT_STACK, &stack);
  page->stack_top = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  page->stack_bytes = stack.rlim_cur == RLIM_INFINITY ? 0 : stack.rlim_cur;
  if (!map_tensors()) return 2;
  syscall(SYS_close_range, static_cast<unsigned>(kPageDescriptor), ~0u, 0u);
  install_handlers();
  const uint32_t number = await_request(0, 1);
  serve(number, [&] {
    const AnyFunction function = load(number, path);
    answer(number);
    return function;
  }());
}

}  // namespace
}  // namespace fixit

int main(int argc, char** argv) {
  return argc == 2 ? fixit::run(argv[1]) : 64;
}

#include "profiler/target/cpu/symbol_rules.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

namespace fixit {
namespace {

using Names = std::unordered_set<std::string_view>;

const Names kLibraries = {"libc.so.6",     "libm.so.6",    "libmvec.so.1",    "libstdc++.so.6",
                          "libgcc_s.so.1", "libgomp.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"};

const Names kAllowed = {
    // memory and strings
    "memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "mempcpy", "bcmp", "bzero", "strlen",
    "strnlen", "strcmp", "strncmp", "strcpy", "strncpy", "strcat", "strncat", "strchr", "strrchr", "strstr",
    "strtol", "strtoul", "strtoll", "strtoull", "strtod", "strtof", "strerror", "atoi", "atol", "atoll",
    "atof", "malloc", "calloc", "realloc", "reallocarray", "free", "aligned_alloc", "posix_memalign",
    "memalign", "valloc", "malloc_usable_size", "__memcpy_chk", "__memmove_chk", "__memset_chk",
    "__strcpy_chk", "__strcat_chk", "__strncpy_chk",
    // arithmetic that is not in libm
    "abs", "labs", "llabs", "div", "ldiv", "lldiv", "qsort", "bsearch", "rand", "srand", "rand_r", "random",
    "srandom", "drand48", "lrand48", "srand48", "erand48", "__fpclassify", "__fpclassifyf", "__isnan",
    "__isnanf", "__isinf", "__isinff", "__finite", "__finitef", "__signbit", "__signbitf", "signgam",
    "fegetround", "fesetround", "feclearexcept", "feraiseexcept", "fetestexcept", "fegetenv", "fesetenv",
    "feholdexcept", "feupdateenv",
    // ending
    "exit", "_exit", "_Exit", "quick_exit", "abort", "atexit", "__assert_fail", "__stack_chk_fail",
    "__chk_fail", "__errno_location", "__tls_get_addr", "__libc_single_threaded", "__cpu_model",
    "__cpu_indicator_init", "__gxx_personality_v0", "__gcc_personality_v0", "__gmon_start__", "__dso_handle",
    // output, which goes nowhere
    "printf", "puts", "putchar", "fprintf", "vprintf", "vfprintf", "sprintf", "snprintf", "vsprintf",
    "vsnprintf", "fputs", "fputc", "putc", "fwrite", "fflush", "perror", "stdout", "stderr", "__printf_chk",
    "__fprintf_chk", "__sprintf_chk", "__snprintf_chk", "__vsnprintf_chk", "__vfprintf_chk",
    // time and machine; the clock of the verdict is another process's
    "clock_gettime", "clock_getres", "clock", "time", "gettimeofday", "difftime", "nanosleep", "usleep",
    "sched_yield", "sched_getcpu", "sysconf", "getpagesize", "get_nprocs", "get_nprocs_conf", "getenv",
    "secure_getenv"};

const Names kMath = {
    "acos",       "asin",   "atan",     "atan2",  "cos",    "sin",     "tan",         "sincos",
    "acosh",      "asinh",  "atanh",    "cosh",   "sinh",   "tanh",    "exp",         "exp2",
    "exp10",      "pow10",  "expm1",    "log",    "log2",   "log10",   "log1p",       "logb",
    "ilogb",      "pow",    "sqrt",     "cbrt",   "hypot",  "erf",     "erfc",        "tgamma",
    "lgamma",     "gamma",  "lgamma_r", "ceil",   "floor",  "trunc",   "round",       "roundeven",
    "nearbyint",  "rint",   "lrint",    "llrint", "lround", "llround", "fmod",        "remainder",
    "remquo",     "fma",    "fmax",     "fmin",   "fdim",   "fabs",    "copysign",    "nextafter",
    "nexttoward", "scalbn", "scalbln",  "scalb",  "ldexp",  "frexp",   "modf",        "nan",
    "j0",         "j1",     "jn",       "y0",     "y1",     "yn",      "significand", "cabs",
    "carg",       "cexp",   "clog",     "cpow",   "csqrt",  "creal",   "cimag",       "conj",
    "cproj",      "csin",   "ccos",     "ctan",   "csinh",  "ccosh",   "ctanh"};

constexpr std::array kAllowedPrefixes = {"GOMP_",
                                         "omp_",
                                         "_ZGV",
                                         "__cxa_",
                                         "_Unwind_",
                                         "_ITM_",
                                         "_ZSt",
                                         "_ZNSt",
                                         "_ZNSo",
                                         "_ZNSi",
                                         "_ZNKSo",
                                         "_ZNKSi",
                                         "_ZNKSt",
                                         "_ZNVSt",
                                         "_ZTVSt",
                                         "_ZTISt",
                                         "_ZTSSt",
                                         "_ZTTSt",
                                         "_ZTVNSt",
                                         "_ZTINSt",
                                         "_ZTSNSt",
                                         "_ZTTNSt",
                                         "_ZNSa",
                                         "_ZNSs",
                                         "_ZNKSs",
                                         "_ZTVN10__cxxabiv1",
                                         "_ZTIN10__cxxabiv1",
                                         "_ZN9__gnu_cxx",
                                         "_ZNK9__gnu_cxx",
                                         "_ZTI",
                                         "_ZTS",
                                         "_Znw",
                                         "_Zna",
                                         "_Zdl",
                                         "_Zda",
                                         "pthread_",
                                         "sem_",
                                         "__pthread_",
                                         "__mulsc3",
                                         "__muldc3",
                                         "__mulxc3",
                                         "__divsc3",
                                         "__divdc3",
                                         "__divxc3",
                                         "__powi",
                                         "__extend",
                                         "__trunc",
                                         "__float",
                                         "__fix",
                                         "__udiv",
                                         "__umod",
                                         "__divti3",
                                         "__modti3",
                                         "__multi3",
                                         "__popcount"};

struct Refusal {
  std::string_view beginning;
  std::string_view reason;
};
constexpr Refusal kRefusedPrefixes[] = {{"dl", "loads code or looks up symbols at run time"},
                                        {"__libc_dl", "loads code or looks up symbols at run time"},
                                        {"system", "runs other programs"},
                                        {"popen", "runs other programs"},
                                        {"exec", "runs other programs"},
                                        {"posix_spawn", "runs other programs"},
                                        {"fork", "starts processes"},
                                        {"vfork", "starts processes"},
                                        {"clone", "starts processes"},
                                        {"socket", "uses the network"},
                                        {"connect", "uses the network"},
                                        {"send", "uses the network"},
                                        {"recv", "uses the network"},
                                        {"ptrace", "looks into processes"},
                                        {"process_vm", "looks into processes"},
                                        {"open", "opens files"},
                                        {"creat", "opens files"},
                                        {"fopen", "opens files"},
                                        {"freopen", "opens files"},
                                        {"fdopen", "opens files"},
                                        {"__open", "opens files"},
                                        {"shm_", "opens shared memory"},
                                        {"memfd_", "opens shared memory"},
                                        {"syscall", "makes system calls of its own"},
                                        {"prctl", "makes system calls of its own"},
                                        {"signal", "changes signal handling"},
                                        {"sig", "changes signal handling"},
                                        {"kill", "signals processes"},
                                        {"raise", "signals processes"},
                                        {"pthread_kill", "signals threads"},
                                        {"pthread_sig", "changes signal handling"},
                                        {"pthread_cancel", "ends other threads"},
                                        {"pthread_atfork", "hooks into fork"},
                                        {"mprotect", "changes memory protection"},
                                        {"mmap", "maps memory of its own"},
                                        {"mremap", "maps memory of its own"},
                                        {"munmap", "unmaps memory"},
                                        {"cblas_", "is a BLAS library's"},
                                        {"openblas_", "is a BLAS library's"},
                                        {"mkl_", "is a BLAS library's"},
                                        {"cuda", "is of the CUDA run time, which the CPU target has not"}};

bool begins(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Parts of the C++ library that reach files.
bool touches_files(std::string_view name) {
  if (!begins(name, "_Z")) return false;
  for (const std::string_view part :
       {"filebuf", "ifstream", "ofstream", "basic_fstream", "filesystem", "__basic_file"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

// libm's functions exist for double, float (f) and long double (l), and as __NAME_finite.
bool is_math(std::string_view name) {
  if (begins(name, "__") && name.size() > 9 && name.substr(name.size() - 7) == "_finite")
    name = name.substr(2, name.size() - 9);
  if (kMath.count(name) != 0) return true;
  if (name.size() < 2 || (name.back() != 'f' && name.back() != 'l')) return false;
  return kMath.count(name.substr(0, name.size() - 1)) != 0;
}

}  // namespace

std::string why_symbol_is_refused(std::string_view name) {
  if (touches_files(name)) return "opens files";
  if (kAllowed.count(name) != 0 || is_math(name)) return "";
  for (const Refusal& refusal : kRefusedPrefixes)
    if (begins(name, refusal.beginning)) return std::string(refusal.reason);
  const bool allowed = std::any_of(kAllowedPrefixes.begin(), kAllowedPrefixes.end(),
                                   [&](std::string_view beginning) { return begins(name, beginning); });
  return allowed ? "" : "is not on the allow-list";
}

bool is_library_allowed(std::string_view soname) {
  return kLibraries.count(soname) != 0;
}

}  // namespace fixit

#include "worker/compile/banned_headers.h"

#include <fnmatch.h>

#include <filesystem>

namespace fixit {
namespace {

constexpr std::string_view kLibrary =
    "the kernel must do the computation itself, not call a numerics library";
constexpr std::string_view kLoading = "a kernel may not load code or libraries at run time";
constexpr std::string_view kProcess = "a kernel may not start, trace or signal processes";
constexpr std::string_view kNetwork = "a kernel may not use the network";
constexpr std::string_view kMemory = "a kernel may not map, protect or share memory";
constexpr std::string_view kKernelInterface = "a kernel may not make system calls of its own";

struct Rule {
  const char* pattern;  // fnmatch(3) on the file's name, or with a slash on the end of the path
  std::string_view reason;
};

constexpr Rule kRules[] = {
    // Numerics libraries. Only those of the file's name are listed: their private headers come with them.
    {"cblas*.h", kLibrary},
    {"f77blas.h", kLibrary},
    {"openblas*.h", kLibrary},
    {"lapacke*.h", kLibrary},
    {"lapack.h", kLibrary},
    {"mkl*.h", kLibrary},
    {"mkl*.hpp", kLibrary},
    {"blis*.h", kLibrary},
    {"dnnl*.h", kLibrary},
    {"dnnl*.hpp", kLibrary},
    {"oneapi/dnnl/*", kLibrary},
    {"onednn*", kLibrary},
    {"mkldnn*", kLibrary},
    {"libxsmm*.h", kLibrary},
    {"xnnpack.h", kLibrary},
    {"fbgemm*", kLibrary},
    {"fftw3*.h", kLibrary},
    {"gsl_*.h", kLibrary},
    {"armadillo", kLibrary},
    {"Eigen/*", kLibrary},
    {"eigen3/*", kLibrary},
    {"xtensor/*", kLibrary},
    {"torch/*", kLibrary},
    {"ATen/*", kLibrary},
    {"cublas*", kLibrary},
    {"cudnn*", kLibrary},
    {"cusparse*", kLibrary},
    {"cusolver*", kLibrary},
    {"cutlass/*", kLibrary},
    {"cute/*", kLibrary},
    // Ways around the checks. syscall.h is not among them: the standard <atomic> reads it. A system call made
    // through it meets the sandbox.
    {"dlfcn.h", kLoading},
    {"link.h", kLoading},
    {"ltdl.h", kLoading},
    {"Python.h", kLoading},
    {"sys/ptrace.h", kProcess},
    {"sys/wait.h", kProcess},
    {"spawn.h", kProcess},
    {"sys/socket.h", kNetwork},
    {"netdb.h", kNetwork},
    {"netinet/*", kNetwork},
    {"arpa/inet.h", kNetwork},
    {"sys/mman.h", kMemory},
    {"sys/shm.h", kMemory},
    {"sys/ipc.h", kMemory},
    {"sys/prctl.h", kKernelInterface},
    {"seccomp.h", kKernelInterface},
    {"linux/perf_event.h", kKernelInterface},
    {"linux/bpf.h", kKernelInterface},
};

// True if `pattern` matches the path's last components, as many as the pattern has.
bool matches_end(const char* pattern, std::string_view path) {
  std::string_view rest(pattern);
  size_t components = 1;
  for (const char c : rest) components += c == '/';
  size_t begin = path.size();
  for (size_t i = 0; i < components; ++i) {
    if (begin == 0) return false;
    const size_t slash = path.rfind('/', begin - 1);
    begin = slash == std::string_view::npos ? 0 : slash;
  }
  if (begin < path.size() && path[begin] == '/') ++begin;
  return fnmatch(pattern, std::string(path.substr(begin)).c_str(), FNM_PATHNAME) == 0;
}

// A pattern "Eigen/*" names a folder: anything below it counts, however deep.
bool matches_folder(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) return false;
  const std::string folder(pattern.substr(0, pattern.size() - 1));
  return path.starts_with(folder) || path.find("/" + folder) != std::string_view::npos;
}

}  // namespace

std::optional<BannedHeader> find_banned_header(std::string_view path) {
  for (const Rule& rule : kRules)
    if (matches_end(rule.pattern, path) || matches_folder(rule.pattern, path))
      return BannedHeader{std::string(path), std::string(rule.reason)};
  return std::nullopt;
}

}  // namespace fixit

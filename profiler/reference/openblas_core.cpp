#include "profiler/reference/openblas_core.h"

#include <unistd.h>

#include <cstdlib>
#include <set>

#ifdef FIXIT_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace fixit {

std::string better_openblas_core() {
#ifdef FIXIT_HAVE_OPENBLAS
  const char* chosen = std::getenv("OPENBLAS_CORETYPE");
  if (chosen != nullptr && *chosen != '\0') return {};
  // The x86-64 core types without AVX2 kernels (OpenBLAS, driver/others/dynamic.c).
  static const std::set<std::string> kWithoutAvx2 = {
      "Katmai",     "Coppermine", "Northwood",   "Prescott",  "Banias",       "Core2",     "Penryn",
      "Dunnington", "Nehalem",    "Athlon",      "Opteron",   "Opteron_SSE3", "Barcelona", "Bobcat",
      "Atom",       "Nano",       "Sandybridge", "Bulldozer", "Piledriver"};
  if (!kWithoutAvx2.contains(openblas_get_corename())) return {};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return {};
}

void restart_with_better_openblas_core(char** argv) {
  const std::string core = better_openblas_core();
  if (core.empty()) return;
  setenv("OPENBLAS_CORETYPE", core.c_str(), 1);
  execv("/proc/self/exe", argv);
  unsetenv("OPENBLAS_CORETYPE");  // it could not be run again: the library's own choice stands
}

}  // namespace fixit

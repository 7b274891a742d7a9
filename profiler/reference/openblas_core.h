// Which kernels OpenBLAS uses on this processor.
#pragma once

#include <string>

namespace fixit {

// OpenBLAS picks its kernels once, when it is loaded, by the processor's model number; a processor newer than
// the library falls back to SSE3 kernels, which would make the reference several times slower than the
// library is. The core type whose kernels the processor's own feature bits permit, if the library's choice is
// such a fallback and the user has not set OPENBLAS_CORETYPE; else empty. The numbers are still checked
// before it is used.
std::string better_openblas_core();

// Runs this program again, with the same arguments, under OPENBLAS_CORETYPE=better_openblas_core(). Returns
// if there is none. REQUIRES: no thread has been started.
void restart_with_better_openblas_core(char** argv);

}  // namespace fixit

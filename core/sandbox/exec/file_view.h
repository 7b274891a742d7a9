// The file system that a sandboxed program sees.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fixit {

// Replaces this process's root by a read-only tmpfs that holds `read_only` and `writable`, bound at their own
// places, and /dev/{null,zero,urandom}. Missing read-only paths are skipped. Symbolic links of the old root
// folder into a bound folder (/lib64 -> usr/lib64) are kept. REQUIRES: own mount namespace and CAP_SYS_ADMIN
// in it. Errors name the path.
Status enter_file_view(const std::vector<std::string>& read_only, const std::string& writable);

}  // namespace fixit

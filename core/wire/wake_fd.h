// Ends a poll from another thread.
#pragma once

#include "core/base/file.h"

namespace fixit {

class WakeFd {
 public:
  WakeFd();
  int fd() const { return fd_.get(); }
  void wake();  // thread-safe; any number before a clear() count as one
  void clear();

 private:
  UniqueFd fd_;
};

}  // namespace fixit

// Time behind an interface that tests replace.
#pragma once

#include <cstdint>

namespace fixit {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t unix_ms() const = 0;    // wall clock, for records and deadlines that leave the process
  virtual int64_t steady_ms() const = 0;  // monotonic, for every wait inside the process
  static const Clock& system();           // thread-safe, lives for ever
};

}  // namespace fixit

// Whether Redis can be trusted to have run, and its clock to have ticked, since it was last looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/queue/redis.h"

namespace fixit {

// Lease deadlines are in Redis's time. After an outage, a restart or a jump of that clock they say nothing
// about the workers, who could not renew.
class RedisWatch {
 public:
  struct Limits {
    int64_t silence_ms = 5000;      // between two good looks
    int64_t clock_drift_ms = 2000;  // Redis's clock against ours, between two looks
  };
  RedisWatch(Redis& redis, const Clock& clock, Limits limits);

  // Looks at Redis. The reason if leases must first be granted a fresh term: the first look, a former
  // failure, a long silence, another server process, a clock that jumped. An error if Redis cannot be
  // reached.
  Result<std::optional<std::string>> look();

 private:
  struct Seen {
    std::string run_id;
    int64_t redis_ms = 0;
    int64_t steady_ms = 0;
  };
  Result<Seen> read();

  Redis& redis_;
  const Clock& clock_;
  const Limits limits_;
  std::optional<Seen> last_;
  bool failed_ = false;
};

}  // namespace fixit

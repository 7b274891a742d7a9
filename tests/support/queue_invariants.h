// Whether a lane's indexes agree with its records.
#pragma once

#include <string>

#include "core/queue/job_queue.h"

namespace fixit::testing {

// Reads the whole lane and returns every disagreement between records and indexes, one a line; empty if none.
// REQUIRES: nothing else uses the lane meanwhile.
std::string queue_faults(Redis& redis, const Lane& lane);

}  // namespace fixit::testing

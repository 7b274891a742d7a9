// The records that a trajectory leaves.
#pragma once

#include "worker/engine/trajectory.h"

namespace fixit {

// Loads sweep-dependent fields: checks the payload's indices against the sweep (kInvalid) and names the axes.
Status resolve_axes(Trajectory& trajectory);

JobEvent turn_event(const TurnRecord& record);
JobEvent rationale_event(const RationaleRecord& record);
// `progress` is what the job ends with.
JobEvent end_event(const Trajectory& trajectory, const JobProgress& progress, JobOutcome outcome,
                   const std::string& error, int64_t now_ms);

}  // namespace fixit

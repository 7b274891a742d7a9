// The one place where the records' msgpack code is compiled.
#include "core/record/event.h"
#include "core/record/frozen_sweep.h"

namespace fixit {

FIXIT_CODEC(Verdict)
FIXIT_CODEC(Origin)
FIXIT_CODEC(JobPayload)
FIXIT_CODEC(JobProgress)
FIXIT_CODEC(CompileRecord)
FIXIT_CODEC(TurnRecord)
FIXIT_CODEC(RationaleRecord)
FIXIT_CODEC(JobEndRecord)
FIXIT_CODEC(FrozenSweep)

}  // namespace fixit

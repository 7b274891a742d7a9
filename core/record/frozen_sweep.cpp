#include "core/record/frozen_sweep.h"

namespace fixit {

BlobHash FrozenSweep::hash() const {
  FrozenSweep timeless = *this;
  timeless.launched_ms = 0;
  return sha256(encode(timeless));
}

}  // namespace fixit

// Waiting in tests without sleeping for luck.
#pragma once

#include <chrono>
#include <functional>

namespace fixit::testing {

// True as soon as `condition` is; false if it still is not when `limit` has passed.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds limit = std::chrono::seconds(10));

}  // namespace fixit::testing

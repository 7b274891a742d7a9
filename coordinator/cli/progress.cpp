#include "coordinator/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "coordinator/cli/command_context.h"

namespace fixit {
namespace {

constexpr std::chrono::milliseconds kPollInterval{500};

class ProgressLine {
 public:
  ~ProgressLine() {
    if (terminal_ && !last_.empty()) std::fputs("\n", stderr);
  }
  void show(const std::string& line) {
    if (line == last_) return;
    last_ = line;
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::string last_;
};

}  // namespace

std::string progress_line(const SweepState& state) {
  std::string line = state.name + ": ";
  if (state.phase == "rollout")
    line += fmt::format("rollout {}/{}", state.finished, state.planned);
  else if (state.phase_planned > 0)
    line += fmt::format("{} {}/{}", state.phase, state.phase_finished, state.phase_planned);
  else
    line += state.phase;
  std::string turns;
  for (const auto& [status, count] : state.turns_by_status)
    turns += fmt::format("{}{} {}", turns.empty() ? "" : ", ", status, count);
  if (!turns.empty()) line += " | " + turns;
  return line + fmt::format(" | {} tokens", state.tokens);
}

Result<SweepState> watch_until_done(Registry& registry, const std::string& sweep,
                                    const std::function<Status()>& check) {
  ProgressLine progress;
  while (true) {
    if (interrupted())
      return Status(ErrorCode::kCancelled, "interrupted; the sweep goes on where a coordinator runs, and launching "
                                           "it again goes on from here");
    FIXIT_RETURN_IF_ERROR(check());
    const auto states = registry.states();
    // An outage of Redis is not the end of the sweep: the coordinator waits it out, and so does this.
    if (states.ok())
      for (const SweepState& state : *states) {
        if (state.name != sweep) continue;
        progress.show(progress_line(state));
        if (state.phase == "done" || state.phase == "failed") return state;
      }
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace fixit

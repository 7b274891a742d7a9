// The demonstration sweep as a test runs it: the shipped configuration, with fewer and shorter measurements,
// and a folder of its own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "coordinator/journal/journal.h"
#include "core/config/site_config.h"
#include "core/record/event.h"
#include "tests/support/temporary_folder.h"

namespace fixit::testing {

class Demonstration {
 public:
  Demonstration();

  std::filesystem::path sweep() const { return folder_ / "configs/sweeps/quickstart.yaml"; }
  std::filesystem::path gpu() const { return folder_ / "configs/gpus/cpu.yaml"; }
  std::filesystem::path data() const { return folder_ / "data"; }
  std::filesystem::path rows() const { return data() / "datasets/quickstart/rows.jsonl"; }
  SiteConfig site() const;  // embedded Redis, the data folder, short leases

  // Runs the `fixit` program with these words to its end; its exit code and output.
  struct Finished {
    std::string ending;  // "exit code 0"
    std::string output;  // stdout and stderr
  };
  Finished fixit(const std::vector<std::string>& words) const;

  // Every finished turn of a kind: (problem, sample, turn) -> status. Repairs: sample and turn of the
  // failure, then the repair's turn.
  using Turns = std::map<std::tuple<std::string, int, int, int>, std::string>;
  Turns turns(JobKind kind) const;
  // Every record that the journal must hold once and holds more often, as text.
  std::vector<std::string> duplicates() const;
  int64_t tokens() const;  // of all model calls in the journal

  // Rows without what was measured: problem, failure, repaired kernel, rationale, and every message but the
  // feedback, whose digits may be latencies.
  std::vector<std::string> rows_without_measurements() const;

 private:
  TemporaryFolder folder_;
};

std::filesystem::path program_folder();

}  // namespace fixit::testing

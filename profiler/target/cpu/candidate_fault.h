// From the end of a candidate's process to a Fault that a person, or a model, can act on.
#pragma once

#include <string>
#include <vector>

#include "core/record/verdict.h"
#include "core/sandbox/sandbox.h"
#include "profiler/target/cpu/call_page.h"

namespace fixit {

struct MappedTensor {
  std::string name;
  uint64_t address = 0;  // in the candidate
  uint64_t bytes = 0;
  bool output = false;
};

// What the supervisor knew of the process before candidate code ran in it.
struct CandidateLayout {
  std::vector<MappedTensor> tensors;
  uint64_t load_base = 0;
  uint64_t stack_top = 0;
  uint64_t stack_bytes = 0;
};

// `hint` and `text` come from memory that the candidate could write: they explain, they decide nothing.
Fault explain_end(const ExitStatus& status, const CandidateLayout& layout, const FaultHint& hint,
                  const std::string& text, const std::string& object);

}  // namespace fixit

// Static checks of a compiled candidate (ELF x86-64), before anything of it runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fixit {

struct ObjectVerdict {
  bool allowed = false;
  std::string check;     // "undefined symbol", "needed library", "constructor", "ifunc", "entry point",
                         // "executable stack"
  std::string evidence;  // "dlopen", "libopenblas.so.0", ...
};
// Undefined symbols against an allow-list (C and C++ run time, libm, OpenMP, threads, memory), DT_NEEDED
// against one, no constructors beyond the compiler's own, no IFUNCs, an exported entry point. A file that is
// not a well-formed shared object is kInvalid.
Result<ObjectVerdict> check_object(std::string_view object, std::string_view entry_point);

struct CodeSite {
  uint64_t offset = 0;   // virtual address in the object
  std::string function;  // nearest symbol, "?" if none
  std::string text;      // "vfmadd231ps ymm0, ymm1, ymm2"
  int flops = 0;         // floating point operations of one execution (2 x lanes)
};
// All instructions of a family ("fma") in the object's executable sections, by Capstone. kCorrupt where bytes
// do not disassemble (the proof is then `unknown`), kUnsupported for an unknown family.
Result<std::vector<CodeSite>> find_instructions(std::string_view object, std::string_view family);

}  // namespace fixit

// The files of a journal's folder (docs/journal-format.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace fixit {

inline constexpr std::string_view kJournalMagic = "FIXJRNL1";

struct JournalSegment {
  int64_t epoch = 0;
  int64_t number = 0;  // counts on over all epochs
  std::filesystem::path path;
};

std::string segment_name(int64_t epoch, int64_t number);

// In order of writing. Other files are passed over. kNotFound if there is no such folder.
Result<std::vector<JournalSegment>> list_segments(const std::filesystem::path& folder);

}  // namespace fixit

#include "coordinator/journal/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace fixit {

std::string segment_name(int64_t epoch, int64_t number) {
  return fmt::format("{:08}-{:04}.journal", epoch, number);
}

Result<std::vector<JournalSegment>> list_segments(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<JournalSegment> segments;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    return Status(ErrorCode::kNotFound, "reading the journal " + folder.string() + ": " + error.message());
  for (const auto& entry : entries) {
    JournalSegment segment{0, 0, entry.path()};
    const std::string name = entry.path().filename().string();
    long long epoch = 0, number = 0;
    if (std::sscanf(name.c_str(), "%lld-%lld.journal", &epoch, &number) != 2) continue;
    if (name != segment_name(epoch, number)) continue;
    segment.epoch = epoch;
    segment.number = number;
    segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(), [](const JournalSegment& a, const JournalSegment& b) {
    return std::tie(a.number, a.epoch) < std::tie(b.number, b.epoch);
  });
  return segments;
}

}  // namespace fixit

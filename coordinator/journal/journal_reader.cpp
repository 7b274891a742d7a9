#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "coordinator/journal/journal.h"
#include "coordinator/journal/segments.h"
#include "core/store/record_file.h"

namespace fixit {
namespace {

// False if the visitor wants no more.
Result<bool> read_segment(const JournalSegment& segment,
                          const std::function<bool(const JournalRecord&)>& visit) {
  // Read, not mapped: a writer that meets a full disk cuts the file it has just appended to.
  FIXIT_ASSIGN_OR_RETURN(const std::string bytes, read_file(segment.path));
  bool wanted = true;
  Status fault;
  RecordVisitor visitor;
  visitor.record = [&](uint64_t offset, std::string_view payload) {
    auto record = decode<JournalRecord>(payload);
    if (!record.ok()) {
      fault = record.status().with_context(fmt::format("the record at byte {}", offset));
      return false;
    }
    wanted = visit(*record);
    return wanted;
  };
  visitor.damage = [&](uint64_t offset, uint64_t next) {
    fault = Status(ErrorCode::kCorrupt,
                   fmt::format("damaged from byte {} to {}; restore the file from a copy", offset, next));
    return false;
  };
  FIXIT_ASSIGN_OR_RETURN(const auto scan, scan_records(bytes, kJournalMagic, true, visitor));
  FIXIT_RETURN_IF_ERROR(fault);
  if (scan.torn)
    spdlog::warn("journal: {} ends with a torn record: {} bytes after byte {} are passed over",
                 segment.path.string(), bytes.size() - scan.whole_bytes, scan.whole_bytes);
  return wanted;
}

}  // namespace

Status read_journal(const std::filesystem::path& folder,
                    const std::function<bool(const JournalRecord&)>& visit) {
  FIXIT_ASSIGN_OR_RETURN(const auto segments, list_segments(folder));
  for (const auto& segment : segments) {
    const auto wanted = read_segment(segment, visit);
    if (!wanted.ok()) return wanted.status().with_context("journal: " + segment.path.string());
    if (!*wanted) return {};
  }
  return {};
}

}  // namespace fixit

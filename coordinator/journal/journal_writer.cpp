#include "coordinator/journal/journal.h"
#include "coordinator/journal/segments.h"
#include "core/store/record_file.h"

namespace fixit {
namespace {

constexpr uint64_t kSegmentBytes = 64ull << 20;

class SegmentWriter : public JournalWriter {
 public:
  SegmentWriter(std::filesystem::path folder, UniqueFd lock, int64_t epoch, int64_t last_number)
      : folder_(std::move(folder)), lock_(std::move(lock)), epoch_(epoch), number_(last_number) {}

  Status begin_segment() {
    FIXIT_ASSIGN_OR_RETURN(segment_,
                           RecordFile::create(folder_ / segment_name(epoch_, number_ + 1), kJournalMagic));
    number_ += 1;
    return {};
  }

  Status append(const JournalRecord& record) override {
    if (segment_->size() > kSegmentBytes) {
      // What stands in the old segment must not become durable after what stands in the new one.
      FIXIT_RETURN_IF_ERROR(segment_->sync().with_context("journal"));
      FIXIT_RETURN_IF_ERROR(begin_segment().with_context("journal"));
    }
    return segment_->append(encode(record)).status().with_context("journal");
  }

  Status sync() override { return segment_->sync().with_context("journal"); }

 private:
  const std::filesystem::path folder_;
  const UniqueFd lock_;
  const int64_t epoch_;
  int64_t number_;
  std::unique_ptr<RecordFile> segment_;
};

}  // namespace

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(const std::filesystem::path& folder,
                                                           int64_t epoch) {
  if (epoch < 0) return Status(ErrorCode::kInvalid, "a journal's epoch is not negative");
  FIXIT_ASSIGN_OR_RETURN(UniqueFd lock, lock_folder(folder));
  FIXIT_ASSIGN_OR_RETURN(const auto segments, list_segments(folder));
  const int64_t last = segments.empty() ? 0 : segments.back().number;
  auto writer = std::make_unique<SegmentWriter>(folder, std::move(lock), epoch, last);
  FIXIT_RETURN_IF_ERROR(writer->begin_segment().with_context("opening the journal"));
  return Result<std::unique_ptr<JournalWriter>>(std::move(writer));
}

}  // namespace fixit

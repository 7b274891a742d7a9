#include "coordinator/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "core/base/file.h"
#include "core/base/hash.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = fs::temp_directory_path() / ("fixit-journal-" + random_hex(8)); }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<JournalWriter> open(int64_t epoch) {
    auto writer = JournalWriter::open(folder_, epoch);
    EXPECT_TRUE(writer.ok()) << writer.status().to_string();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  static JournalRecord record(const std::string& position, const std::string& data = "data") {
    return {JournalKind::kTurn, "sweep", data, "lane", position, 1};
  }
  std::vector<std::string> positions() {
    std::vector<std::string> found;
    const Status status = read_journal(folder_, [&](const JournalRecord& read) {
      found.push_back(read.position);
      return true;
    });
    EXPECT_TRUE(status.ok()) << status.to_string();
    return found;
  }

  fs::path folder_;
};

TEST_F(JournalTest, GivesRecordsBackInOrderWhileBeingWritten) {
  auto writer = open(3);
  EXPECT_THAT(positions(), ElementsAre());
  ASSERT_TRUE(writer->append({JournalKind::kPlan, "s", std::string("\0\xff", 2), "l", "1-0", 77}).ok());
  ASSERT_TRUE(writer->append(record("2-0")).ok());
  ASSERT_TRUE(writer->sync().ok());
  std::vector<JournalRecord> read;
  ASSERT_TRUE(read_journal(folder_, [&](const JournalRecord& r) {
                read.push_back(r);
                return true;
              }).ok());
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].kind, JournalKind::kPlan);
  EXPECT_EQ(read[0].data, std::string("\0\xff", 2));
  EXPECT_EQ(read[0].written_ms, 77);
  EXPECT_EQ(read[1].position, "2-0");
}

TEST_F(JournalTest, StopsWhenTheVisitorHasEnough) {
  auto writer = open(1);
  for (const char* position : {"1", "2", "3"}) ASSERT_TRUE(writer->append(record(position)).ok());
  int seen = 0;
  EXPECT_TRUE(read_journal(folder_, [&](const JournalRecord&) { return ++seen < 2; }).ok());
  EXPECT_EQ(seen, 2);
}

TEST_F(JournalTest, GoesOnInANewSegmentInOrderOfWritingWhateverTheEpoch) {
  ASSERT_TRUE(open(1)->append(record("a")).ok());
  ASSERT_TRUE(open(12)->append(record("b")).ok());
  ASSERT_TRUE(open(12)->append(record("c")).ok());
  ASSERT_TRUE(open(2)->append(record("d")).ok()) << "epochs begin anew after a wiped Redis";
  EXPECT_THAT(positions(), ElementsAre("a", "b", "c", "d"));
  EXPECT_TRUE(fs::exists(folder_ / "00000012-0003.journal"));
}

TEST_F(JournalTest, RefusesASecondWriter) {
  auto writer = open(1);
  EXPECT_EQ(JournalWriter::open(folder_, 2).status().code(), ErrorCode::kConflict);
}

TEST_F(JournalTest, RotatesSegments) {
  auto writer = open(1);
  const std::string data = std::string(9u << 20, 'x');
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(writer->append(record(std::to_string(i), data)).ok());
  EXPECT_TRUE(fs::exists(folder_ / "00000001-0002.journal"));
  EXPECT_THAT(positions(), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8"));
}

TEST_F(JournalTest, EndsASegmentAtItsTornTail) {
  ASSERT_TRUE(open(1)->append(record("kept")).ok());
  const fs::path segment = folder_ / "00000001-0001.journal";
  const std::string kept = *read_file(segment);
  fs::remove_all(folder_);
  {
    auto writer = open(1);
    ASSERT_TRUE(writer->append(record("kept")).ok());
    ASSERT_TRUE(writer->append(record("torn")).ok());
  }
  const std::string whole = *read_file(segment);
  ASSERT_TRUE(open(2)->append(record("after")).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    ASSERT_TRUE(write_file_durably(segment, whole.substr(0, size)).ok());
    if (size < kept.size())
      EXPECT_THAT(positions(), ElementsAre("after"));
    else
      EXPECT_THAT(positions(), ElementsAre("kept", "after"));
  }
}

TEST_F(JournalTest, NamesSegmentAndOffsetOfDamage) {
  size_t second = 0;
  const fs::path segment = folder_ / "00000001-0001.journal";
  {
    auto writer = open(1);
    ASSERT_TRUE(writer->append(record("1")).ok());
    second = fs::file_size(segment);
    ASSERT_TRUE(writer->append(record("2")).ok());
    ASSERT_TRUE(writer->append(record("3")).ok());
  }
  const std::string whole = *read_file(segment);
  for (size_t at = 8; at < second; at += 3) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    ASSERT_TRUE(write_file_durably(segment, changed).ok());
    const Status status = read_journal(folder_, [](const JournalRecord&) { return true; });
    EXPECT_EQ(status.code(), ErrorCode::kCorrupt) << at;
    EXPECT_THAT(status.message(), HasSubstr("00000001-0001.journal"));
    EXPECT_THAT(status.message(), HasSubstr("byte 8"));
  }
}

TEST_F(JournalTest, LeavesNothingTornWhenTheDiskIsFull) {
  auto writer = open(1);
  ASSERT_TRUE(writer->append(record("1")).ok());
  const fs::path segment = folder_ / "00000001-0001.journal";
  const auto size = fs::file_size(segment);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit smaller{size + 100, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &smaller), 0);
  const Status full = writer->append(record("lost", std::string(5000, 'x')));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(full.code(), ErrorCode::kFull) << full.to_string();
  EXPECT_EQ(fs::file_size(segment), size);
  ASSERT_TRUE(writer->append(record("2")).ok());
  ASSERT_TRUE(writer->sync().ok());
  EXPECT_THAT(positions(), ElementsAre("1", "2"));
}

TEST_F(JournalTest, WithoutAFolderIsNotFound) {
  EXPECT_EQ(read_journal(folder_, [](const JournalRecord&) { return true; }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fixit

// Recorded replies: the slot is the path, the text is as written.
#include "core/record/recorded_replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;

class RecordedReplies : public ::testing::Test {
 protected:
  std::string error() {
    const auto replies = load_recorded_replies(folder_.path());
    return replies.ok() ? "accepted" : replies.status().message();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(RecordedReplies, AreNamedByTheirPath) {
  folder_.write("rollout/gemm/sample0/turn1.md", "text\n");
  folder_.write("repair/gemm/sample0-turn1/turn0.md", "other\r\n");
  folder_.write("rollout/gemm/notes.txt", "not a reply");
  const auto replies = load_recorded_replies(folder_.path());
  ASSERT_TRUE(replies.ok()) << replies.status().message();
  ASSERT_EQ(replies->size(), 2u);
  EXPECT_EQ(replies->at("rollout/gemm/sample0/turn1").text, "text\n");
  EXPECT_EQ(replies->at("rollout/gemm/sample0/turn1").finish_reason, "stop");
  EXPECT_EQ(replies->at("repair/gemm/sample0-turn1/turn0").text, "other\r\n");
}

TEST_F(RecordedReplies, FrontMatterSaysHowTheReplyEnded) {
  folder_.write("a.md", "---\r\nfinish_reason: length\r\nreasoning: |\r\n  I think.\r\n---\r\n```cpp\n---\n");
  folder_.write("b.md", "---\n---\nplain\n");
  folder_.write("c.md", "text\n---\nfinish_reason: length\n---\n");
  folder_.write("d.md", "");
  const auto replies = load_recorded_replies(folder_.path());
  ASSERT_TRUE(replies.ok()) << replies.status().message();
  EXPECT_EQ(replies->at("a").finish_reason, "length");
  EXPECT_EQ(replies->at("a").reasoning, "I think.\n");
  EXPECT_EQ(replies->at("a").text, "```cpp\n---\n");
  EXPECT_EQ(replies->at("b").text, "plain\n");
  EXPECT_EQ(replies->at("c").text, "text\n---\nfinish_reason: length\n---\n");
  EXPECT_EQ(replies->at("d").text, "");
}

TEST_F(RecordedReplies, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(), HasSubstr("no .md file below"));
  folder_.write("a.md", "---\nfinish_reason: stop\n");
  EXPECT_THAT(error(), HasSubstr("a.md:1: front matter"));
  folder_.write("a.md", "---\n\nfinish_reason: stopped\n---\n");
  EXPECT_THAT(error(), HasSubstr("a.md:3: finish_reason: is `stopped`; accepted: stop, length"));
  folder_.write("a.md", "---\nfinish_reasn: stop\n---\n");
  EXPECT_THAT(error(), HasSubstr("a.md:2: `finish_reasn`: unknown key; did you mean `finish_reason`?"));
  EXPECT_EQ(load_recorded_replies(folder_ / "none").status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fixit

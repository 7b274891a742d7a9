#include "worker/rationale/rationale_filter.h"

#include <gtest/gtest.h>

namespace fixit {
namespace {

RationaleStage limits() {
  RationaleStage stage;
  stage.min_chars = 20;
  stage.max_chars = 400;
  stage.forbidden = {"ground truth", "Hidden Answer"};
  return stage;
}

const std::string kGood = "I see that the loop over k stops one element early, so I let it run to K.";

TEST(RationaleFilter, AcceptsAndTrims) {
  const RationaleCheck check = check_rationale("\n  " + kGood + " \n", limits());
  EXPECT_TRUE(check.accepted) << check.rule;
  EXPECT_EQ(check.text, kGood);
}

TEST(RationaleFilter, TakesWhatIsBetweenTheTags) {
  EXPECT_EQ(check_rationale("Sure.\n<rationale>\n" + kGood + "\n</rationale>\nBye", limits()).text, kGood);
  EXPECT_EQ(check_rationale("<rationale>" + kGood, limits()).text, kGood);
  const std::string thought =
      "<think>I put it in <rationale> tags</think><rationale>" + kGood + "</rationale>";
  EXPECT_TRUE(check_rationale(thought, limits()).accepted);
  EXPECT_EQ(check_rationale(thought, limits()).text, kGood);
}

TEST(RationaleFilter, NamesTheBrokenRule) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "too_short"},
      {"<rationale></rationale>" + kGood, "too_short"},
      {"I fix it.", "too_short"},
      {std::string(401, 'a'), "too_long"},
      {kGood + " The GROUND\n  truth says so.", "forbidden_phrase:ground truth"},
      {kGood + " A hidden answer.", "forbidden_phrase:Hidden Answer"},
      {kGood + " As in the repaired kernel, K is used.", "mentions_repair"},
      {kGood + " The fixed\nkernel does so.", "mentions_repair"},
      {kGood + " This is the correct solution.", "mentions_repair"},
      {kGood + " I do what the expert did.", "mentions_repair"},
      {"<think>hm</think> " + kGood, "thinking_tags"},
      {kGood + " </Thinking>", "thinking_tags"},
      {kGood + "\n```cpp\nextern \"C\" void run(float* A) {\n}\n```\n", "code_block"},
      {kGood + "\n```\nvoid run(float* A) {\n", "code_block"},
      {"Я вижу, что цикл по k останавливается на один элемент раньше.", "language"},
      {"我看到沿 k 的循环提前一个元素停止了，因此我把它改到 K 为止。所以结果正确。", "language"},
  };
  for (const auto& [reply, rule] : cases) {
    const RationaleCheck check = check_rationale(reply, limits());
    EXPECT_EQ(check.rule, rule) << reply;
    EXPECT_FALSE(check.accepted);
  }
}

TEST(RationaleFilter, LeavesHonestTextAlone) {
  for (const std::string& text :
       {kGood + " My expertise with caches helps.",
        kGood + " I change `for (k = 0; k < K - 1; ++k)` and then call run(A, C, M).",
        kGood + "\n```cpp\nfor (int k = 0; k < K; ++k) sum += a[k];\n```\n",
        kGood + " The error is ≤ 1e-3 → fine — naïve summation is enough “here”."})
    EXPECT_EQ(check_rationale(text, limits()).rule, "") << text;
}

TEST(RationaleFilter, CountsCharactersNotBytes) {
  std::string text(210, 'a');
  for (int i = 0; i < 60; ++i) text += "é";
  RationaleStage stage = limits();
  stage.max_chars = 270;
  EXPECT_EQ(check_rationale(text, stage).rule, "");
  stage.max_chars = 269;
  EXPECT_EQ(check_rationale(text, stage).rule, "too_long");
}

}  // namespace
}  // namespace fixit

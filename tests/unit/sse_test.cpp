#include "worker/llm/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace fixit {
namespace {

std::vector<std::string> events(const std::string& stream, size_t piece, bool* ok = nullptr,
                                size_t limit = 1024) {
  SseParser parser(limit);
  std::vector<std::string> found;
  bool fits = true;
  for (size_t at = 0; at < stream.size(); at += piece)
    fits = parser.feed(std::string_view(stream).substr(at, piece),
                       [&](std::string_view data) { found.emplace_back(data); });
  if (ok != nullptr) *ok = fits;
  return found;
}

TEST(Sse, EventsAreTheSameHoweverTheBytesArrive) {
  const std::string stream =
      "\xef\xbb\xbf"
      "data: one\n\n: comment\n\ndata:two\r\n\r\nevent: x\rid: 3\rdata: a\rdata:  b\r\rdata\n\nretry: 1\n\n"
      "dataset: no\n\ndata: [DONE]\n\ndata: unfinished\n";
  const std::vector<std::string> expected = {"one", "two", "a\n b", "", "[DONE]"};
  for (size_t piece = 1; piece <= stream.size(); ++piece) EXPECT_EQ(events(stream, piece), expected) << piece;
}

TEST(Sse, ALineOrEventBeyondTheLimitStopsTheStream) {
  bool ok = true;
  EXPECT_TRUE(events("data: " + std::string(2000, 'x') + "\n\ndata: y\n\n", 7, &ok).empty());
  EXPECT_FALSE(ok);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "data: 12345678\n";
  EXPECT_TRUE(events(many + "\n", 64, &ok).empty());
  EXPECT_FALSE(ok);
  EXPECT_EQ(events("data: " + std::string(1000, 'x') + "\n\n", 64, &ok).size(), 1u);
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace fixit

// Stored tensors are read only where the file's own figures agree.
#include "core/trace/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mutation.h"

namespace fixit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

const std::string kHeader =
    R"({"__metadata__":{"by":"test"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(Safetensors, FindsTensors) {
  const std::string file = file_of(kHeader, std::string(24, 'x') + std::string(8, 'y'));
  const auto a = find_tensor(file, "a");
  ASSERT_TRUE(a.ok()) << a.status().message();
  EXPECT_EQ(a->dtype, Dtype::kFloat32);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  EXPECT_EQ(a->data, std::string(24, 'x'));
  const auto b = find_tensor(file, "b");
  ASSERT_TRUE(b.ok());
  EXPECT_TRUE(b->shape.empty());
  EXPECT_EQ(b->data, std::string(8, 'y'));
}

TEST(Safetensors, MissingTensorsNameWhatExists) {
  const auto missing = find_tensor(file_of(kHeader, std::string(32, 'x')), "c");
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("a, b"));
}

TEST(Safetensors, RefusesFiguresThatDisagree) {
  const std::string data(32, 'x');
  const auto code = [&](std::string_view from, std::string_view to) {
    return find_tensor(file_of(replaced(kHeader, from, to), data), "a").status().code();
  };
  EXPECT_EQ(code("[0,24]", "[0,20]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[24,32]", "[24,33]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[24,32]", "[32,24]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[24,32]", "[16,32]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[0,24]", "[-1,24]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[2,3]", "[4611686018427387904,4]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("[2,3]", "[2.5,3]"), ErrorCode::kCorrupt);
  EXPECT_EQ(code("F32", "C64"), ErrorCode::kUnsupported);
  EXPECT_EQ(find_tensor(file_of(kHeader, data + "z"), "a").status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(find_tensor("", "a").status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(find_tensor(std::string(8, '\xff'), "a").status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(find_tensor(file_of("[]", ""), "a").status().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(find_tensor("version https://git-lfs.github.com/spec/v1\n", "a").status().message(),
              HasSubstr("git lfs pull"));
}

TEST(Safetensors, DamagedFilesGiveErrorsAndNothingWorse) {
  const std::string file = file_of(kHeader, std::string(32, 'x'));
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string damaged = mutated(file, random);
    const auto view = find_tensor(damaged, "a");
    if (!view.ok()) {
      ++refused;
      continue;
    }
    ASSERT_GE(view->data.data(), damaged.data());
    ASSERT_LE(view->data.data() + view->data.size(), damaged.data() + damaged.size());
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace fixit

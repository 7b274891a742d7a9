#include "core/wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/wire/socket.h"

namespace fixit {
namespace {

using testing::HasSubstr;

struct FutureEnvelope {
  int version = 2;
  std::string type = "profile_many";
  std::string id = "7";
  int blobs = 0;
  FIXIT_FIELDS(version, type, id, blobs);
};

Message example() {
  Message message = make_message(MessageType::kBlobPut, "12", BlobRef{sha256("blob")});
  message.blobs = {"blob", std::string("\0\xff", 2)};
  return message;
}

TEST(Message, ComesBackAsItWas) {
  const Message message = example();
  const auto decoded = decode_message(encode_message(message));
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_EQ(decoded->type, message.type);
  EXPECT_EQ(decoded->id, message.id);
  EXPECT_EQ(decoded->body, message.body);
  EXPECT_EQ(decoded->blobs, message.blobs);
  EXPECT_EQ(decode<BlobRef>(decoded->body)->hash, sha256("blob"));
}

TEST(Message, OfEachTypeComesBack) {
  for (int number = 0; number <= static_cast<int>(MessageType::kJobResult); ++number) {
    const auto type = static_cast<MessageType>(number);
    const auto decoded = decode_message(encode_message(Message{type, "1", "", {}}));
    ASSERT_TRUE(decoded.ok()) << "type number " << number << " has no name";
    EXPECT_EQ(decoded->type, type);
  }
}

TEST(Message, OfAnotherVersionIsRefusedNamingBoth) {
  const std::vector<std::string> frames = {encode(FutureEnvelope{}), ""};
  const auto decoded = decode_message(frames);
  EXPECT_EQ(decoded.status().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(decoded.status().message(), HasSubstr("version 2"));
  EXPECT_THAT(decoded.status().message(), HasSubstr("version 1"));
  EXPECT_EQ(message_id(frames), "7") << "the answer must find its asker";
}

TEST(Message, WithWrongFramesIsCorrupt) {
  const auto whole = encode_message(example());
  const auto code = [](const std::vector<std::string>& frames) {
    return decode_message(frames).status().code();
  };
  EXPECT_EQ(code({}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({""}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({whole[0]}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({whole[0], whole[1], whole[2]}), ErrorCode::kCorrupt) << "a blob is missing";
  EXPECT_EQ(code({whole[0], whole[1], whole[2], whole[3], ""}), ErrorCode::kCorrupt) << "a blob too many";
  EXPECT_EQ(code({encode(std::string("text")), ""}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({encode(std::vector<int>{1, 2}), ""}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({whole[0] + "x", whole[1], whole[2], whole[3]}), ErrorCode::kCorrupt);
  EXPECT_EQ(code({std::string(100000, '\x81'), ""}), ErrorCode::kCorrupt);
  Message message = example();
  message.id.assign(300, 'i');
  EXPECT_EQ(code(encode_message(message)), ErrorCode::kCorrupt);
  message = example();
  message.blobs.assign(kMaxBlobs + 1, "");
  EXPECT_EQ(code(encode_message(message)), ErrorCode::kCorrupt);
}

TEST(Message, CutAnywhereNeverDecodesToSomethingElse) {
  const auto whole = encode_message(example());
  for (size_t size = 0; size < whole[0].size(); ++size)
    EXPECT_FALSE(decode_message({whole[0].substr(0, size), whole[1], whole[2], whole[3]}).ok()) << size;
  for (size_t size = 0; size < whole[1].size(); ++size)
    EXPECT_FALSE(decode<BlobRef>(std::string_view(whole[1]).substr(0, size)).ok()) << size;
}

TEST(Message, SurvivesRandomChanges) {
  ProfileRequest request;
  request.key = sha256("key");
  request.workloads.push_back({"uuid", "{}", {{"a.safetensors", sha256("a")}}});
  const auto whole = encode_message(make_message(MessageType::kProfile, "1", request));
  std::mt19937 random(20240901);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto frames = whole;
    for (unsigned change = 0, changes = 1 + random() % 4; change < changes; ++change) {
      std::string& frame = frames[random() % frames.size()];
      frame[random() % frame.size()] = static_cast<char>(random());
    }
    const auto decoded = decode_message(frames);
    if (!decoded.ok() || !decode<ProfileRequest>(decoded->body).ok()) ++refused;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 20000) << "changes inside texts leave a whole message";
}

TEST(ProfileRequestKey, CoversWhatIsAskedAndNothingElse) {
  ProfileRequest request;
  request.compile_key = "compiled";
  request.definition = "{}";
  request.workloads.push_back({"uuid", "{}", {}});
  const auto key = profile_request_key(request);
  EXPECT_TRUE(is_blob_hash(key));
  const auto changed = [&](auto change) {
    ProfileRequest other = request;
    change(other);
    return profile_request_key(other) != key;
  };
  EXPECT_TRUE(changed([](auto& r) { r.compile_key = "other"; }));
  EXPECT_TRUE(changed([](auto& r) { r.definition = "{ }"; }));
  EXPECT_TRUE(changed([](auto& r) { r.workloads[0].uuid = "other"; }));
  EXPECT_TRUE(changed([](auto& r) { r.target.timed_calls += 1; }));
  EXPECT_TRUE(changed([](auto& r) { r.binding = "tvm-ffi"; }));
  EXPECT_FALSE(changed([](auto& r) {
    r.sweep = "s", r.job = "j", r.priority = 9, r.deadline_ms = 1, r.fresh = true, r.source = sha256("");
  }));
}

TEST(RequireLoopback, LetsOnlyThisMachineIn) {
  for (const char* endpoint :
       {"tcp://127.0.0.1:*", "tcp://127.1.2.3:5555", "tcp://[::1]:5555", "ipc:///tmp/x"})
    EXPECT_TRUE(require_loopback(endpoint).ok()) << endpoint;
  for (const char* endpoint :
       {"tcp://*:5555", "tcp://0.0.0.0:5555", "tcp://10.0.0.1:5555", "tcp://127.example.org:1",
        "tcp://[::]:5555", "tcp://eth0:1", "pgm://127.0.0.1:1", ""})
    EXPECT_EQ(require_loopback(endpoint).code(), ErrorCode::kDenied) << endpoint;
}

}  // namespace
}  // namespace fixit

// The connection and the private server, on a real redis-server.
#include "core/queue/redis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>

#include "core/queue/embedded_redis.h"
#include "tests/support/eventually.h"
#include "tests/support/private_redis.h"

namespace fixit {
namespace {

using ::testing::HasSubstr;
using testing::PrivateRedis;
using testing::TemporaryFolder;

int64_t elapsed_ms(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - since)
      .count();
}

TEST(RedisUrl, FormsAreReadAndSecretsRefused) {
  const auto tcp = parse_redis_url("redis://ann@example.org:7000/3", "");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->host, "example.org");
  EXPECT_EQ(tcp->port, 7000);
  EXPECT_EQ(tcp->database, 3);
  EXPECT_EQ(tcp->user, "ann");
  EXPECT_EQ(parse_redis_url("redis://[::1]:7001", "")->host, "::1");
  EXPECT_EQ(parse_redis_url("redis://localhost", "")->port, 6379);
  EXPECT_EQ(parse_redis_url("unix:///run/redis.sock", "")->unix_socket, "/run/redis.sock");

  const auto secret = parse_redis_url("redis://ann:hunter2@example.org", "");
  ASSERT_FALSE(secret.ok());
  EXPECT_EQ(secret.status().message().find("hunter2"), std::string::npos);
  EXPECT_EQ(parse_redis_url("rediss://example.org", "").status().code(), ErrorCode::kUnsupported);
  for (const char* wrong : {"", "http://x", "redis://", "redis://h:port", "redis://h:70000", "redis://h/x",
                            "unix://relative", "redis://[::1"})
    EXPECT_EQ(parse_redis_url(wrong, "").status().code(), ErrorCode::kInvalid) << wrong;
}

TEST(RedisUrl, PasswordComesFromTheNamedVariable) {
  setenv("FIXIT_TEST_PASSWORD", "open sesame", 1);
  EXPECT_EQ(parse_redis_url("redis://h", "FIXIT_TEST_PASSWORD")->password, "open sesame");
  unsetenv("FIXIT_TEST_PASSWORD");
  const auto missing = parse_redis_url("redis://h", "FIXIT_TEST_PASSWORD");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("FIXIT_TEST_PASSWORD"));
}

TEST(RedisConnection, CarriesAnyBytes) {
  const PrivateRedis server;
  const auto redis = server.connect();
  const std::string bytes("\0\r\n$-1\xff{}", 10);
  ASSERT_TRUE(redis->call({"SET", bytes, bytes}).ok());
  EXPECT_EQ(redis->call({"GET", bytes})->text, bytes);
  EXPECT_TRUE(redis->call({"GET", "absent"})->is_nil());
}

TEST(RedisConnection, PipelineKeepsErrorsInTheirReplies) {
  const PrivateRedis server;
  const auto redis = server.connect();
  const auto replies = redis->pipeline({{"SET", "a", "1"}, {"LPUSH", "a", "x"}, {"INCR", "a"}});
  ASSERT_TRUE(replies.ok());
  EXPECT_EQ((*replies)[1].kind, RedisReply::Kind::kError);
  EXPECT_EQ((*replies)[2].integer, 2);
  EXPECT_EQ(redis->call({"LPUSH", "a", "x"}).status().code(), ErrorCode::kInternal);
}

TEST(RedisConnection, LargePipelineBothWaysDoesNotBlock) {
  const PrivateRedis server;
  const auto redis = server.connect();
  const std::string big(1 << 20, 'x');
  std::vector<Redis::Command> commands(48, {"ECHO", big});
  const auto replies = redis->pipeline(commands);
  ASSERT_TRUE(replies.ok()) << replies.status().to_string();
  for (const RedisReply& reply : *replies) EXPECT_EQ(reply.text.size(), big.size());
}

TEST(RedisConnection, SelectsDatabaseAndUsesAclUser) {
  const PrivateRedis server;
  const auto admin = server.connect();
  ASSERT_TRUE(admin->call({"ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all", "-flushall"}).ok());
  RedisAddress address = server.address();
  address.database = 2;
  address.user = "ann";
  address.password = "secret";
  const auto redis = Redis::connect(address);
  ASSERT_TRUE(redis.ok()) << redis.status().to_string();
  ASSERT_TRUE((*redis)->call({"SET", "here", "1"}).ok());
  EXPECT_TRUE(admin->call({"GET", "here"})->is_nil());
  EXPECT_EQ((*redis)->call({"FLUSHALL"}).status().code(), ErrorCode::kDenied);
  address.password = "wrong";
  const auto refused = Redis::connect(address);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kDenied);
  EXPECT_EQ(refused.status().message().find("wrong "), std::string::npos);
}

TEST(RedisConnection, OutageIsUnavailableWithinTheTimeoutAndEndsByItself) {
  PrivateRedis server;
  const auto redis = server.connect(300);
  ASSERT_TRUE(redis->call({"SET", "kept", "yes"}).ok());
  server.kill();
  for (int i = 0; i < 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(redis->call({"GET", "kept"}).status().code(), ErrorCode::kUnavailable);
    EXPECT_LT(elapsed_ms(begin), 1500);
  }
  server.start();
  EXPECT_TRUE(testing::eventually([&] {
    const auto reply = redis->call({"GET", "kept"});
    return reply.ok() && reply->text == "yes";
  }));
}

TEST(RedisConnection, HungServerIsUnavailableWithinTheTimeoutAndRepliesNeverShift) {
  const PrivateRedis server;
  const auto redis = server.connect(200);
  const auto other = server.connect();
  ASSERT_TRUE(redis->call({"SET", "a", "1"}).ok());
  ASSERT_TRUE(other->call({"CLIENT", "PAUSE", "600", "ALL"}).ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(redis->call({"ECHO", "late"}).status().code(), ErrorCode::kUnavailable);
  EXPECT_LT(elapsed_ms(begin), 550);
  EXPECT_TRUE(testing::eventually([&] {
    const auto reply = redis->call({"GET", "a"});
    if (reply.ok()) {
      EXPECT_EQ(reply->text, "1");
    }
    return reply.ok();
  }));
}

TEST(RedisConnection, RestartBetweenCallsIsNotNoticed) {
  PrivateRedis server;
  const auto redis = server.connect();
  ASSERT_TRUE(redis->call({"SET", "kept", "yes"}).ok());
  server.kill();
  server.start();
  const auto reply = redis->call({"GET", "kept"});
  ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  EXPECT_EQ(reply->text, "yes");
}

TEST(CheckRedis, RefusesWhatLosesJobs) {
  const PrivateRedis server;
  const auto redis = server.connect();
  EXPECT_TRUE(check_redis(*redis, false).ok());
  EXPECT_TRUE(check_redis(*redis, false).ok()) << "a schema that is there already";

  ASSERT_TRUE(redis->call({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}).ok());
  EXPECT_THAT(check_redis(*redis, true).message(), HasSubstr("maxmemory-policy noeviction"));
  ASSERT_TRUE(redis->call({"CONFIG", "SET", "maxmemory-policy", "noeviction"}).ok());

  ASSERT_TRUE(redis->call({"CONFIG", "SET", "appendonly", "no"}).ok());
  EXPECT_THAT(check_redis(*redis, false).message(), HasSubstr("appendonly yes"));
  EXPECT_TRUE(check_redis(*redis, true).ok());
  ASSERT_TRUE(redis->call({"CONFIG", "SET", "save", "60 1"}).ok());
  EXPECT_TRUE(check_redis(*redis, false).ok()) << "snapshots are persistence too";

  ASSERT_TRUE(redis->call({"SET", "fx:schema", "999"}).ok());
  EXPECT_EQ(check_redis(*redis, true).code(), ErrorCode::kUnsupported);
}

TEST(EmbeddedRedis, SecondStartOnTheSameFolderJoins) {
  const TemporaryFolder folder;
  auto first = EmbeddedRedis::start(folder.path());
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  {
    const auto second = EmbeddedRedis::start(folder.path());
    ASSERT_TRUE(second.ok()) << second.status().to_string();
    EXPECT_EQ((*second)->pid(), 0);
    EXPECT_EQ((*second)->url(), (*first)->url());
  }
  const auto redis = Redis::connect((*first)->address());
  ASSERT_TRUE(redis.ok()) << "leaving must not stop a joined server";
  EXPECT_TRUE((*redis)->call({"PING"}).ok());
}

TEST(EmbeddedRedis, StartsAtOnceFromTwoThreadsAsOneServer) {
  const TemporaryFolder folder;
  auto start = [&] { return EmbeddedRedis::start(folder.path()); };
  auto a = std::async(std::launch::async, start);
  auto b = std::async(std::launch::async, start);
  const auto first = a.get();
  const auto second = b.get();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->url(), (*second)->url());
  EXPECT_NE((*first)->pid() == 0, (*second)->pid() == 0) << "exactly one started it";
}

TEST(EmbeddedRedis, DeepFolderIsServedByThePort) {
  const TemporaryFolder folder;
  const auto deep = folder / std::string(120, 'd');
  const auto server = EmbeddedRedis::start(deep);
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  EXPECT_THAT((*server)->url(), HasSubstr("redis://127.0.0.1:"));
  const auto redis = Redis::connect((*server)->address());
  ASSERT_TRUE(redis.ok());
  EXPECT_TRUE((*redis)->call({"PING"}).ok());
}

TEST(EmbeddedRedis, StopsWithItsOwner) {
  const TemporaryFolder folder;
  int pid = 0;
  {
    const auto server = EmbeddedRedis::start(folder.path());
    ASSERT_TRUE(server.ok());
    pid = (*server)->pid();
    ASSERT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(EmbeddedRedis, UnusableFolderIsSaid) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "x");
  const auto server = EmbeddedRedis::start(file / "below");
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.status().message(), HasSubstr(file.string()));
}

}  // namespace
}  // namespace fixit

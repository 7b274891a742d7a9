#include "core/queue/embedded_redis.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/child_process.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kStartLimit{10000};
constexpr milliseconds kPollInterval{10};
constexpr int kPortAttempts = 8;

// What other processes need to join the server of a folder: redis.json in it.
struct ServerFile {
  int64_t pid = 0;
  int port = 0;
  std::string unix_socket;  // empty: only the port
  FIXIT_FIELDS(pid, port, unix_socket);
};

fs::path server_file(const fs::path& folder) {
  return folder / "redis.json";
}

RedisAddress address_of(const ServerFile& server) {
  RedisAddress address;
  address.port = server.port;
  address.unix_socket = server.unix_socket;
  return address;
}

// A socket's path has at most 107 bytes; in a deeper folder the loopback port alone serves.
std::string socket_path(const fs::path& folder) {
  const std::string path = (folder / "redis.sock").string();
  return path.size() < sizeof(sockaddr_un::sun_path) ? path : std::string();
}

class Server final : public EmbeddedRedis {
 public:
  Server(ServerFile file, std::unique_ptr<ChildProcess> process)
      : file_(std::move(file)), process_(std::move(process)) {}

  RedisAddress address() const override { return address_of(file_); }
  std::string url() const override {
    return file_.unix_socket.empty() ? fmt::format("redis://127.0.0.1:{}", file_.port)
                                     : "unix://" + file_.unix_socket;
  }
  int pid() const override { return process_ ? process_->pid() : 0; }

 private:
  ServerFile file_;
  std::unique_ptr<ChildProcess> process_;  // null if joined
};

// The answer to PING of the server in `file`, checked to be the process it names: after a crash another
// program may listen on its port.
Status ping(const ServerFile& file) {
  FIXIT_ASSIGN_OR_RETURN(const auto redis, Redis::connect(address_of(file), 1000));
  FIXIT_RETURN_IF_ERROR(redis->call({"PING"}).status());
  FIXIT_ASSIGN_OR_RETURN(const RedisReply info, redis->call({"INFO", "server"}));
  if (info.text.find(fmt::format("\nprocess_id:{}\r", file.pid)) == std::string::npos)
    return Status(ErrorCode::kConflict, "another server answers at its address");
  return {};
}

std::unique_ptr<EmbeddedRedis> try_join(const fs::path& folder) {
  const auto text = read_file(server_file(folder), 1 << 16);
  if (!text.ok()) return nullptr;
  const auto json = parse_json(*text, server_file(folder).string());
  if (!json.ok()) return nullptr;
  const auto file = from_json<ServerFile>(*json);
  if (!file.ok() || kill(static_cast<pid_t>(file->pid), 0) != 0) return nullptr;
  // It may be reading a long append-only file: as long as it says so, it is worth waiting for.
  Status answer = ping(*file);
  while (!answer.ok() && answer.message().find("LOADING") != std::string::npos) {
    std::this_thread::sleep_for(kPollInterval);
    answer = ping(*file);
  }
  if (!answer.ok()) return nullptr;
  return std::make_unique<Server>(*file, nullptr);
}

std::string last_lines(const fs::path& log) {
  const auto text = read_file(log);
  if (!text.ok()) return "it left no log";
  return text->substr(text->size() > 600 ? text->size() - 600 : 0);
}

Status await_answer(ChildProcess& process, const ServerFile& file) {
  auto deadline = Steady::now() + kStartLimit;
  while (true) {
    const Status answer = ping(file);
    if (answer.ok()) return answer;
    if (process.exited()) return Status(ErrorCode::kUnavailable, "redis-server ended at once");
    if (answer.message().find("LOADING") != std::string::npos) deadline = Steady::now() + kStartLimit;
    if (Steady::now() >= deadline)
      return Status(ErrorCode::kTimeout, "redis-server does not answer: " + answer.message());
    std::this_thread::sleep_for(kPollInterval);
  }
}

// A port of 127.0.0.1 that was free a moment ago.
Result<int> free_loopback_port() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket_fd || bind(socket_fd.get(), generic, size) != 0 ||
      getsockname(socket_fd.get(), generic, &size) != 0)
    return Status(ErrorCode::kInternal, fmt::format("no free loopback port: {}", std::strerror(errno)));
  return static_cast<int>(ntohs(address.sin_port));
}

std::vector<std::string> command_line(const fs::path& folder, const ServerFile& file) {
  std::vector<std::string> words = {"redis-server",
                                    "--bind",
                                    "127.0.0.1",
                                    "--protected-mode",
                                    "yes",
                                    "--port",
                                    std::to_string(file.port),
                                    "--daemonize",
                                    "no",
                                    "--dir",
                                    folder.string(),
                                    "--logfile",
                                    (folder / "redis.log").string(),
                                    "--appendonly",
                                    "yes",
                                    "--appendfsync",
                                    "everysec",
                                    "--save",
                                    "",
                                    "--maxmemory-policy",
                                    "noeviction",
                                    "--tcp-backlog",
                                    "128"};
  if (!file.unix_socket.empty())
    words.insert(words.end(), {"--unixsocket", file.unix_socket, "--unixsocketperm", "700"});
  return words;
}

Result<std::unique_ptr<EmbeddedRedis>> start_once(const fs::path& folder) {
  ServerFile file;
  FIXIT_ASSIGN_OR_RETURN(file.port, free_loopback_port());
  file.unix_socket = socket_path(folder);
  FIXIT_ASSIGN_OR_RETURN(auto process, ChildProcess::spawn({.words = command_line(folder, file)}));
  file.pid = process->pid();
  FIXIT_RETURN_IF_ERROR(await_answer(*process, file));
  FIXIT_RETURN_IF_ERROR(write_file_durably(server_file(folder), to_json(file).dump() + "\n"));
  return std::unique_ptr<EmbeddedRedis>(std::make_unique<Server>(std::move(file), std::move(process)));
}

}  // namespace

Result<std::unique_ptr<EmbeddedRedis>> EmbeddedRedis::start(const fs::path& given) {
  std::error_code error;
  fs::create_directories(given, error);
  const fs::path folder = fs::canonical(given, error);
  if (error)
    return Status(ErrorCode::kInvalid, fmt::format("embedded Redis: cannot use the folder {}: {}",
                                                   given.string(), error.message()));
  // Two programs that start at the same time must end with one server.
  const UniqueFd lock(open((folder / "redis.lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock || flock(lock.get(), LOCK_EX) != 0)
    return Status(ErrorCode::kDenied, fmt::format("embedded Redis: cannot lock {}/redis.lock: {}",
                                                  folder.string(), std::strerror(errno)));
  if (auto joined = try_join(folder)) return joined;

  // Between finding a free port and listening on it another program may take it: then the server ends at
  // once.
  Status last;
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    auto started = start_once(folder);
    if (started.ok()) return started;
    last = started.status();
    if (last.code() != ErrorCode::kUnavailable) break;
    spdlog::debug("embedded Redis: {}", last.message());
  }
  return Status(last.code(),
                fmt::format("embedded Redis in {}: {}; the end of {}/redis.log: {}", folder.string(),
                            last.message(), folder.string(), last_lines(folder / "redis.log")));
}

}  // namespace fixit

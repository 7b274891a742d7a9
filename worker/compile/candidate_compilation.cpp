#include "worker/compile/candidate_compilation.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <csignal>

#include "core/base/clock.h"
#include "worker/compile/banned_headers.h"
#include "worker/compile/dependency_list.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFreeBytes =
    16u << 20;  // with less left on the disk, a failed compilation is the disk's fault

Compiled infra(std::string check, std::string evidence) {
  Compiled compiled;
  compiled.record.status = TurnStatus::kInfra;
  compiled.record.check = std::move(check);
  compiled.record.evidence = std::move(evidence);
  return compiled;
}

Compiled with_log(TurnStatus status, const std::string& log, bool repeatable, BlobStore& store) {
  const auto hash = store.put(log);
  if (!hash.ok()) return infra("store", hash.status().to_string());
  Compiled compiled;
  compiled.record.status = status;
  compiled.record.log = *hash;
  compiled.repeatable = repeatable;
  return compiled;
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// A header of the pack, or the source itself.
bool is_given(const CompileJob& job, const fs::path& path, const fs::path& folder) {
  const std::string name = path.lexically_relative(folder).string();
  return name == "kernel.cpp" || job.headers.contains(name);
}

struct Includes {
  std::optional<BannedHeader> banned;
  std::string outside;  // first one that is neither given nor of the toolchain
};

// What kernel.d lists. Without a list (the preprocessor gave up) nothing was included that counts: there is
// no object either.
Includes read_includes(const CompileJob& job, const fs::path& folder) {
  Includes includes;
  const auto text = read_file(folder / "kernel.d", kCompileFileBytes);
  if (!text.ok()) return includes;
  const auto files = parse_dependency_list(*text);
  if (!files.ok()) {
    includes.outside = files.status().to_string();
    return includes;
  }
  for (const std::string& file : *files) {
    const fs::path path = (folder / file).lexically_normal();
    if (is_given(job, path, folder)) continue;
    if (!includes.banned) includes.banned = find_banned_header(file);
    // A header that does not exist is listed as it was written, relative, and is the compiler's to complain
    // of.
    const bool toolchain = is_inside(path, "/usr") || is_inside(path, "/lib") || is_inside(path, "/lib64");
    const bool missing = file.front() != '/' && is_inside(path, folder);
    if (!toolchain && !missing && includes.outside.empty()) includes.outside = file;
  }
  return includes;
}

Compiled refuse(const Includes& includes, const std::string& log, BlobStore& store) {
  if (!includes.banned)
    return with_log(TurnStatus::kCompileError,
                    "kernel.cpp: error: " + includes.outside +
                        ": only the toolchain's headers and those given with the task can be included\n",
                    true, store);
  Compiled compiled = with_log(TurnStatus::kBanned, log, true, store);
  if (compiled.record.status != TurnStatus::kBanned) return compiled;
  compiled.record.check = "header";
  compiled.record.evidence = includes.banned->header + ": " + includes.banned->reason;
  return compiled;
}

bool disk_is_full(const fs::path& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return true;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize < kFreeBytes ||
         (info.f_files > 0 && info.f_favail == 0);
}

Compiled judge_failure(const Gxx& gxx, const CompileJob& job, const CompileFolder& folder,
                       const ExitStatus& status, BlobStore& store, const std::atomic<bool>& stopping) {
  if (disk_is_full(folder.path()))
    return infra("disk", "no space left in " + folder.path().parent_path().string());
  if (status.signal == SIGXFSZ || status.signal == SIGXCPU)  // our own limits: the kernel's doing
    return with_log(
        TurnStatus::kCompileError,
        fmt::format("kernel.cpp: error: the compiler's output or time passed the limit ({} MiB a file) "
                    "and it was stopped: the kernel expands into too much code or data\n{}",
                    kCompileFileBytes >> 20, status.output),
        false, store);
  if (!status.timed_out && !status.exited)
    return infra("compiler", fmt::format("g++ was killed by signal {}", status.signal));
  const auto scanned = run_scan(gxx, job, folder.path(), stopping);
  if (!scanned.ok()) return infra("sandbox", scanned.status().to_string());
  const Includes includes = read_includes(job, folder.path());
  if (includes.banned) return refuse(includes, status.output, store);
  if (!status.timed_out) return with_log(TurnStatus::kCompileError, status.output, true, store);
  // Not cached: on a machine with less to do it may pass.
  return with_log(
      TurnStatus::kCompileError,
      fmt::format("kernel.cpp: error: the compilation took longer than {} seconds and was stopped\n{}",
                  job.gpu.compile_deadline_s, status.output),
      false, store);
}

Compiled judge_success(const CompileJob& job, const CompileFolder& folder, const ExitStatus& status,
                       BlobStore& store) {
  const Includes includes = read_includes(job, folder.path());
  if (includes.banned || !includes.outside.empty()) return refuse(includes, status.output, store);
  const auto object = read_file(folder.path() / "kernel.so", kCompileFileBytes);
  if (!object.ok())
    return infra("compiler", "g++ succeeded without an object: " + object.status().to_string());
  const auto artifact = store.put(*object);
  if (!artifact.ok()) return infra("store", artifact.status().to_string());
  Compiled compiled = with_log(TurnStatus::kCorrect, status.output, true, store);
  compiled.record.artifact = *artifact;
  return compiled;
}

Compiled compile_in_folder(const Gxx& gxx, const CompileJob& job, BlobStore& store,
                           const std::atomic<bool>& stopping) {
  const auto folder = CompileFolder::make(job);
  if (!folder.ok()) return infra("disk", folder.status().to_string());
  if (available_sandbox_level() == SandboxLevel::kSeccomp) {
    // No private view of the file system: what is included must be known before any of it can reach the log.
    const auto scanned = run_scan(gxx, job, folder->path(), stopping);
    if (!scanned.ok()) return infra("sandbox", scanned.status().to_string());
    const Includes includes = read_includes(job, folder->path());
    if (includes.banned || !includes.outside.empty()) return refuse(includes, "", store);
  }
  const auto status = run_compile(gxx, job, folder->path(), stopping);
  if (!status.ok()) return infra("sandbox", status.status().to_string());
  if (status->exited && status->code == 0 && !status->timed_out)
    return judge_success(job, *folder, *status, store);
  return judge_failure(gxx, job, *folder, *status, store, stopping);
}

}  // namespace

std::string compile_key(const Gxx& gxx, const CompileJob& job) {
  return sha256_of({"compile 1", job.source, encode(job.headers), encode(compile_options(job.gpu)),
                    gxx.version, gxx.machine});
}

Compiled compile_candidate(const Gxx& gxx, const CompileJob& job, BlobStore& store,
                           const std::atomic<bool>& stopping) {
  if (job.gpu.target != TargetKind::kCpu)
    return infra("target", "this worker compiles for the CPU target, not for " + job.gpu.name);
  const int64_t begin = Clock::system().steady_ms();
  Compiled compiled = compile_in_folder(gxx, job, store, stopping);
  compiled.record.seconds = static_cast<double>(Clock::system().steady_ms() - begin) / 1000;
  return compiled;
}

}  // namespace fixit

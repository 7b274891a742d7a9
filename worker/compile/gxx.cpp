#include "worker/compile/gxx.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/clock.h"

namespace fixit {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStopCheckMs = 200;
constexpr int kCompilerProcesses = 64;  // g++, cc1plus, as, collect2, ld, and room

SandboxSpec sandbox_of(const fs::path& folder, const GpuConfig& gpu) {
  SandboxSpec spec;
  spec.environment = {{"PATH", "/usr/bin:/bin"},
                      {"LC_ALL", "C.UTF-8"},
                      {"TMPDIR", folder.string()},
                      {"SOURCE_DATE_EPOCH", "0"}};  // __DATE__ and __TIME__ are part of no key
  spec.read_only = {"/usr", "/lib", "/lib64", "/bin"};
  spec.writable = folder;
  spec.memory_bytes = static_cast<int64_t>(gpu.memory_mib) << 20;
  spec.file_bytes = kCompileFileBytes;
  spec.processes = kCompilerProcesses;
  spec.cpu_seconds = static_cast<int>(std::ceil(gpu.compile_deadline_s)) + 1;
  spec.compiler = true;
  return spec;
}

// What is in the file from its start: the whole, or head and tail where it is longer than the limit.
Status read_output(int fd, ExitStatus& status) {
  struct stat info {};
  if (fstat(fd, &info) != 0)
    return Status(ErrorCode::kUnavailable, std::string("compiler output: ") + std::strerror(errno));
  const auto size = static_cast<size_t>(info.st_size);
  const auto read_part = [fd](size_t offset, size_t length) {
    std::string part(length, '\0');
    size_t filled = 0;
    while (filled < length) {
      const ssize_t got =
          pread(fd, part.data() + filled, length - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    part.resize(filled);
    return part;
  };
  if (size <= kCompileOutputBytes) {
    status.output = read_part(0, size);
    return {};
  }
  const size_t half = kCompileOutputBytes / 2;
  status.output_truncated = true;
  status.output = read_part(0, half) + "\n[... " + std::to_string(size - 2 * half) +
                  " bytes left out ...]\n" + read_part(size - half, half);
  return {};
}

// As run_sandboxed(), but ends early when `stopping`: a worker that is told to leave does so within seconds.
Result<ExitStatus> run(SandboxSpec spec, int64_t deadline_ms, const std::atomic<bool>& stopping) {
  const UniqueFd output(memfd_create("compiler-output", MFD_CLOEXEC));
  if (!output || fcntl(output.get(), F_SETFL, O_APPEND) != 0)
    return Status(ErrorCode::kUnavailable, std::string("memfd_create: ") + std::strerror(errno));
  spec.descriptors = {{output.get(), 1}, {output.get(), 2}};
  const int64_t deadline = Clock::system().steady_ms() + deadline_ms;
  FIXIT_ASSIGN_OR_RETURN(const auto process, SandboxedProcess::start(spec));
  for (;;) {
    const int64_t left = deadline - Clock::system().steady_ms();
    Result<ExitStatus> ended = process->wait(std::clamp<int64_t>(left, 0, kStopCheckMs));
    if (!ended.ok() && ended.status().code() != ErrorCode::kTimeout) return ended.status();
    const bool timed_out = !ended.ok() && left <= 0;
    if (!ended.ok() && !timed_out) {
      if (stopping) return Status(ErrorCode::kCancelled, "the worker stops");
      continue;
    }
    process->kill();
    if (timed_out) ended = process->wait(10'000);
    if (!ended.ok()) return ended.status();
    ended->timed_out = timed_out;
    FIXIT_RETURN_IF_ERROR(read_output(output.get(), *ended));
    return *std::move(ended);
  }
}

Result<std::string> ask(const fs::path& program, const std::string& option) {
  GpuConfig limits;
  SandboxSpec spec = sandbox_of({}, limits);
  spec.environment.erase("TMPDIR");
  spec.argv = {program.string(), option};
  const std::atomic<bool> never = false;
  FIXIT_ASSIGN_OR_RETURN(ExitStatus status, run(spec, 20'000, never));
  while (!status.output.empty() && std::isspace(static_cast<unsigned char>(status.output.back())))
    status.output.pop_back();
  if (!status.exited || status.code != 0 || status.output.empty())
    return Status(ErrorCode::kNotFound, program.string() + " " + option + " failed: " + status.output);
  return status.output;
}

}  // namespace

Result<Gxx> Gxx::find() {
  for (const char* candidate : {"/usr/bin/g++", "/usr/local/bin/g++"}) {
    if (access(candidate, X_OK) != 0) continue;
    Gxx gxx;
    gxx.program = candidate;
    FIXIT_ASSIGN_OR_RETURN(gxx.version, ask(gxx.program, "-dumpfullversion"));
    FIXIT_ASSIGN_OR_RETURN(gxx.machine, ask(gxx.program, "-dumpmachine"));
    return gxx;
  }
  return Status(ErrorCode::kNotFound,
                "no g++ in /usr/bin or /usr/local/bin: install the package g++ to compile candidates");
}

Result<CompileFolder> CompileFolder::make(const CompileJob& job) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "fixit-compile-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr)
    return Status(ErrorCode::kUnavailable, "making " + pattern + ": " + std::strerror(errno));
  CompileFolder folder;
  folder.path_ = pattern;
  const auto write = [&](const std::string& name, const std::string& content) -> Status {
    FIXIT_ASSIGN_OR_RETURN(const fs::path path, join_inside(folder.path_, name));
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out << content;
    out.close();
    if (!out) return Status(ErrorCode::kFull, "writing " + path.string() + ": " + std::strerror(errno));
    return {};
  };
  for (const auto& [name, content] : job.headers) FIXIT_RETURN_IF_ERROR(write(name, content));
  FIXIT_RETURN_IF_ERROR(write("kernel.cpp", job.source));
  return folder;
}

CompileFolder::~CompileFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::vector<std::string> compile_options(const GpuConfig& gpu) {
  std::vector<std::string> options = {
      "-O3", "-std=c++20", "-fPIC", "-shared", "-march=" + gpu.arch, "-g1", "-gno-record-gcc-switches",
  };
  options.insert(options.end(), gpu.compile_flags.begin(), gpu.compile_flags.end());
  return options;
}

Result<ExitStatus> run_compile(const Gxx& gxx, const CompileJob& job, const fs::path& folder,
                               const std::atomic<bool>& stopping) {
  SandboxSpec spec = sandbox_of(folder, job.gpu);
  spec.argv = {gxx.program.string()};
  for (const std::string& option : compile_options(job.gpu)) spec.argv.push_back(option);
  for (const char* option :
       {"-fdiagnostics-color=never", "-MD", "-MF", "kernel.d", "-I.", "-o", "kernel.so", "kernel.cpp"})
    spec.argv.emplace_back(option);
  spec.argv.push_back("-ffile-prefix-map=" + folder.string() + "=/fixit");
  return run(std::move(spec), static_cast<int64_t>(job.gpu.compile_deadline_s * 1000), stopping);
}

Result<ExitStatus> run_scan(const Gxx& gxx, const CompileJob& job, const fs::path& folder,
                            const std::atomic<bool>& stopping) {
  SandboxSpec spec = sandbox_of(folder, job.gpu);
  spec.argv = {gxx.program.string()};
  for (const std::string& option : compile_options(job.gpu))
    if (option != "-shared") spec.argv.push_back(option);
  for (const char* option : {"-w", "-M", "-MG", "-MF", "kernel.d", "-I.", "kernel.cpp"})
    spec.argv.emplace_back(option);
  return run(std::move(spec), static_cast<int64_t>(job.gpu.compile_deadline_s * 1000), stopping);
}

}  // namespace fixit

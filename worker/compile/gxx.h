// One g++ run in the sandbox: from a source and its headers to an object, its dependency list and its output.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "core/sandbox/sandbox.h"
#include "worker/compile/compiler.h"

namespace fixit {

inline constexpr size_t kCompileOutputBytes = 1u << 20;  // kept of a compiler's output, head and tail
inline constexpr int64_t kCompileFileBytes = 64ll << 20;

struct Gxx {
  std::filesystem::path program;
  std::string version;  // -dumpfullversion
  std::string machine;  // -dumpmachine
  // Finds and asks the installed g++, inside the sandbox. kNotFound without one.
  static Result<Gxx> find();
};

// A private folder for one compilation; removed by the destructor.
class CompileFolder {
 public:
  static Result<CompileFolder> make(const CompileJob& job);
  CompileFolder(CompileFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  CompileFolder& operator=(CompileFolder&&) = delete;
  ~CompileFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  CompileFolder() = default;
  std::filesystem::path path_;
};

// The fixed options, then the target's own: everything but the names of files and folders.
std::vector<std::string> compile_options(const GpuConfig& gpu);

// Makes kernel.so and kernel.d from kernel.cpp in `folder`. The object does not depend on the folder's name.
// An error is a fault of the sandbox or machine; kCancelled once `stopping` is true.
Result<ExitStatus> run_compile(const Gxx& gxx, const CompileJob& job, const std::filesystem::path& folder,
                               const std::atomic<bool>& stopping);
// Only lists what the source includes, also headers that do not exist, into kernel.d.
Result<ExitStatus> run_scan(const Gxx& gxx, const CompileJob& job, const std::filesystem::path& folder,
                            const std::atomic<bool>& stopping);

}  // namespace fixit

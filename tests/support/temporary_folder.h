// A folder of one test's own.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fixit::testing {

// Made empty under the system's temporary folder, removed with all it holds by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes a file below the folder, making the folders between; returns its path. Aborts on failure.
  std::filesystem::path write(std::string_view name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

}  // namespace fixit::testing

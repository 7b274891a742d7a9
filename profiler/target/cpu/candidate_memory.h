// The memory that the supervisor and a candidate share.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/file.h"
#include "core/base/status.h"
#include "profiler/target/cpu/call_page.h"

namespace fixit {

// A sealed memory file mapped here: nobody can shrink it under us (which would turn our own reads into
// SIGBUS). Immovable, because others hold pointers into the mapping.
class SharedMemory {
 public:
  // `writable_elsewhere` false: every mapping made later, in any process, is read-only for ever.
  static Result<std::unique_ptr<SharedMemory>> create(const std::string& name, size_t bytes,
                                                      bool writable_elsewhere);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::span<std::byte> bytes() { return {data_, size_}; }
  int descriptor() const { return file_.get(); }

 private:
  SharedMemory(UniqueFd file, std::byte* data, size_t size)
      : file_(std::move(file)), data_(data), size_(size) {}
  UniqueFd file_;
  std::byte* data_;
  size_t size_;
};

// One tensor: as near to the end of its mapping as its alignment allows, the slack around it filled with a
// pattern that is NaN as a number of any width, so that a kernel that reads it shows it.
class SharedTensor {
 public:
  static Result<SharedTensor> create(const std::string& name, size_t bytes, bool output);

  const std::string& name() const { return name_; }
  bool output() const { return output_; }
  int descriptor() const { return memory_->descriptor(); }
  size_t mapping_bytes() { return memory_->bytes().size(); }
  std::span<std::byte> data() { return memory_->bytes().subspan(tensor_offset(bytes_), bytes_); }
  size_t size() const { return bytes_; }
  // "write before the start of C" or "write past the end of C", with offset and value; then the slack is
  // restored.
  std::optional<std::string> take_canary_damage(std::string& detail);

 private:
  std::string name_;
  size_t bytes_ = 0;
  bool output_ = false;
  std::unique_ptr<SharedMemory> memory_;
};

}  // namespace fixit

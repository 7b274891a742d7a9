#include "profiler/target/cpu/candidate_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fixit {
namespace {

// 0xfffb: exponent all ones, mantissa not zero in float16, bfloat16, float32 and float64.
constexpr std::byte kCanary[2] = {std::byte{0xfb}, std::byte{0xff}};
std::byte canary_at(size_t offset) {
  return kCanary[offset % 2];
}

Status failed(const std::string& what) {
  return Status(ErrorCode::kFull, what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(const std::string& name, size_t bytes,
                                                           bool writable_elsewhere) {
  UniqueFd file(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return failed(fmt::format("{} bytes of shared memory for {}", bytes, name));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return failed(fmt::format("mapping {} bytes for {}", bytes, name));
  std::unique_ptr<SharedMemory> memory(
      new SharedMemory(std::move(file), static_cast<std::byte*>(data), bytes));
  const int seals =
      F_SEAL_SHRINK | F_SEAL_GROW | (writable_elsewhere ? 0 : F_SEAL_FUTURE_WRITE) | F_SEAL_SEAL;
  if (fcntl(memory->descriptor(), F_ADD_SEALS, seals) != 0) return failed("sealing the memory of " + name);
  return memory;
}

SharedMemory::~SharedMemory() {
  munmap(data_, size_);
}

Result<SharedTensor> SharedTensor::create(const std::string& name, size_t bytes, bool output) {
  SharedTensor tensor;
  tensor.name_ = name;
  tensor.bytes_ = bytes;
  tensor.output_ = output;
  FIXIT_ASSIGN_OR_RETURN(tensor.memory_, SharedMemory::create("tensor", mapping_bytes_of(bytes), output));
  const auto all = tensor.memory_->bytes();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == tensor_offset(bytes)) i += bytes;
    if (i < all.size()) all[i] = canary_at(i);
  }
  return tensor;
}

std::optional<std::string> SharedTensor::take_canary_damage(std::string& detail) {
  const auto all = memory_->bytes();
  const size_t begin = tensor_offset(bytes_), end = begin + bytes_;
  std::optional<std::string> kind;
  const auto check = [&](size_t from, size_t to, std::string_view what, auto distance) {
    for (size_t i = from; i < to; ++i) {
      if (all[i] == canary_at(i)) continue;
      if (!kind) {
        kind = fmt::format("{} {}", what, name_);
        detail = fmt::format("byte {} {} of {} became {:#04x}", distance(i), what.substr(6), name_,
                             static_cast<unsigned>(all[i]));
      }
      all[i] = canary_at(i);
    }
  };
  check(end, all.size(), "write past the end of", [&](size_t i) { return i - end + 1; });
  check(0, begin, "write before the start of", [&](size_t i) { return begin - i; });
  return kind;
}

}  // namespace fixit

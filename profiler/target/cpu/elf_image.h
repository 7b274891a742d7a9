// A bounds-checked reader of ELF64 x86-64 shared objects from untrusted bytes. It follows the dynamic
// section, as the loader does, so that section headers that lie hide nothing from it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fixit {

struct ElfSymbol {
  std::string_view name;  // points into the bytes
  uint64_t value = 0;     // virtual address
  uint64_t size = 0;
  bool defined = false;
  bool exported = false;  // global or weak, visible
  uint8_t type = 0;       // STT_*
};

struct ElfRelocation {
  uint64_t place = 0;  // virtual address that is patched
  uint32_t type = 0;   // R_X86_64_*
  int64_t addend = 0;
  uint32_t symbol = 0;  // index into symbols()
};

struct ElfCode {
  uint64_t address = 0;  // virtual
  std::string_view bytes;
};

// "f(int)" for "_Z1fi"; other names as they are.
std::string demangled(std::string_view name);

// Holds views of the bytes given to parse(): they must outlive it.
class ElfImage {
 public:
  // kInvalid with what is malformed.
  static Result<ElfImage> parse(std::string_view bytes);

  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }  // dynamic symbols, by index
  const std::vector<ElfRelocation>& relocations() const { return relocations_; }
  std::vector<std::string_view> needed() const;
  std::optional<uint64_t> dynamic(int64_t tag) const;  // first entry's value
  // `size` bytes of the file at a virtual address; nullopt where a loaded segment's file part does not hold
  // them.
  std::optional<std::string_view> at(uint64_t address, uint64_t size) const;
  // As many bytes as the segment's file part has from `address` on, at most `size`.
  std::string_view up_to(uint64_t address, uint64_t size) const;
  // Executable sections, or executable segments where there are no section headers.
  const std::vector<ElfCode>& code() const { return code_; }
  // Every symbol table's function that begins at or last before `address`; nullptr if none.
  const ElfSymbol* function_at(uint64_t address) const;

 private:
  Status read_headers();
  Status read_dynamic();
  Status read_symbols();
  Status read_relocations();
  Status read_sections();
  Result<uint64_t> symbol_count() const;
  uint64_t highest_relocated_symbol() const;
  Result<std::string_view> string_at(std::string_view table, uint64_t offset) const;

  std::string_view bytes_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  std::string_view strings_;
  std::vector<ElfSymbol> symbols_;
  std::vector<ElfRelocation> relocations_;
  std::vector<ElfCode> code_;
  std::vector<ElfSymbol> functions_;  // sorted by value
};

}  // namespace fixit

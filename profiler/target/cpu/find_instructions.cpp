#include <capstone/capstone.h>
#include <fmt/format.h>

#include <memory>

#include "profiler/target/cpu/elf_image.h"
#include "profiler/target/cpu/object_check.h"

namespace fixit {
namespace {

struct Disassembler {
  Disassembler() { opened = cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK; }
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;
  ~Disassembler() {
    if (opened) cs_close(&handle);
  }
  csh handle = 0;
  bool opened = false;
};

bool is_fma(std::string_view mnemonic) {
  for (const std::string_view beginning : {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub"})
    if (mnemonic.substr(0, beginning.size()) == beginning) return true;
  return false;
}

// Lanes by the destination's width and the mnemonic's last letters; a mask register's zeros are not known
// statically, so for masked instructions this is an upper bound.
int fma_flops(std::string_view mnemonic, std::string_view operands) {
  if (mnemonic.size() < 2) return 0;
  const char form = mnemonic[mnemonic.size() - 2], type = mnemonic.back();
  if (form == 's') return 2;
  const int element = type == 'd' ? 8 : type == 's' ? 4 : 2;
  const int width = operands.substr(0, 3) == "zmm" ? 64 : operands.substr(0, 3) == "ymm" ? 32 : 16;
  return 2 * width / element;
}

std::string nearest_function(const ElfImage& image, uint64_t address) {
  const ElfSymbol* function = image.function_at(address);
  return function == nullptr ? "?" : demangled(function->name);
}

}  // namespace

Result<std::vector<CodeSite>> find_instructions(std::string_view object, std::string_view family) {
  if (family != "fma")
    return Status(ErrorCode::kUnsupported,
                  fmt::format("instruction family `{}` is unknown; known: fma", family));
  FIXIT_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::parse(object));
  Disassembler disassembler;
  if (!disassembler.opened) return Status(ErrorCode::kInternal, "Capstone could not be opened");
  const std::unique_ptr<cs_insn, void (*)(cs_insn*)> instruction(cs_malloc(disassembler.handle),
                                                                 [](cs_insn* one) { cs_free(one, 1); });
  std::vector<CodeSite> sites;
  for (const ElfCode& code : image.code()) {
    auto bytes = reinterpret_cast<const uint8_t*>(code.bytes.data());
    size_t left = code.bytes.size();
    uint64_t address = code.address;
    while (left > 0) {
      if (!cs_disasm_iter(disassembler.handle, &bytes, &left, &address, instruction.get()))
        return Status(ErrorCode::kCorrupt, fmt::format("bytes at offset {:#x} in {} do not disassemble",
                                                       address, nearest_function(image, address)));
      const std::string_view mnemonic = instruction->mnemonic, operands = instruction->op_str;
      if (!is_fma(mnemonic)) continue;
      sites.push_back({instruction->address, nearest_function(image, instruction->address),
                       fmt::format("{} {}", mnemonic, operands), fma_flops(mnemonic, operands)});
    }
  }
  return sites;
}

}  // namespace fixit

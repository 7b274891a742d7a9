#include "profiler/target/cpu/object_check.h"

#include <fmt/format.h>

#include <optional>

#include "profiler/target/cpu/elf_image.h"
#include "profiler/target/cpu/symbol_rules.h"

namespace fixit {
namespace {

using Finding = std::optional<ObjectVerdict>;

Finding refuse(std::string check, std::string evidence) {
  return ObjectVerdict{false, std::move(check), std::move(evidence)};
}

Finding check_libraries(const ElfImage& image) {
  for (const std::string_view name : image.needed())
    if (!is_library_allowed(name)) return refuse("needed library", std::string(name));
  for (const int64_t tag : {static_cast<int64_t>(DT_AUXILIARY), static_cast<int64_t>(DT_FILTER),
                            static_cast<int64_t>(DT_AUDIT), static_cast<int64_t>(DT_DEPAUDIT)})
    if (image.dynamic(tag)) return refuse("needed library", fmt::format("named by dynamic tag {:#x}", tag));
  return std::nullopt;
}

Finding check_symbols(const ElfImage& image) {
  for (size_t i = 1; i < image.symbols().size(); ++i) {
    const ElfSymbol& symbol = image.symbols()[i];
    if (symbol.defined) continue;
    const std::string reason = why_symbol_is_refused(symbol.name);
    if (!reason.empty()) return refuse("undefined symbol", fmt::format("{} ({})", symbol.name, reason));
  }
  return std::nullopt;
}

Finding check_ifuncs(const ElfImage& image) {
  for (const ElfSymbol& symbol : image.symbols())
    if (symbol.type == STT_GNU_IFUNC && symbol.defined) return refuse("ifunc", std::string(symbol.name));
  for (const ElfRelocation& relocation : image.relocations())
    if (relocation.type == R_X86_64_IRELATIVE)
      return refuse("ifunc", fmt::format("resolver at {:#x}", relocation.addend));
  return std::nullopt;
}

std::string name_of_code(const ElfImage& image, uint64_t address) {
  const ElfSymbol* function = image.function_at(address);
  if (function == nullptr || function->value != address) return fmt::format("code at {:#x}", address);
  std::string name = demangled(function->name);
  // The usual cause deserves its name: people do not write this constructor.
  if (function->name.substr(0, 14) == "_GLOBAL__sub_I")
    name += " (initializes global objects; including <iostream> alone adds one)";
  return name;
}

// The compiler's start files add one entry, frame_dummy, which registers nothing. Whatever else is there
// comes from the candidate and would run before the sandbox is locked.
Finding check_initializers(const ElfImage& image) {
  if (image.dynamic(DT_PREINIT_ARRAY)) return refuse("constructor", ".preinit_array");
  const auto array = image.dynamic(DT_INIT_ARRAY), size = image.dynamic(DT_INIT_ARRAYSZ);
  int of_the_compiler = 0;
  for (uint64_t offset = 0; array && size && offset < *size; offset += 8) {
    const uint64_t place = *array + offset;
    uint64_t target = 0;
    std::string other;
    for (const ElfRelocation& relocation : image.relocations()) {
      if (relocation.place != place) continue;
      if (relocation.type != R_X86_64_RELATIVE) other = std::string(image.symbols()[relocation.symbol].name);
      target = static_cast<uint64_t>(relocation.addend);
    }
    if (!other.empty()) return refuse("constructor", other);
    if (target == 0)
      return refuse("constructor", fmt::format(".init_array entry {} has no plain target", offset / 8));
    const ElfSymbol* function = image.function_at(target);
    const bool stripped = function == nullptr || function->value != target;
    if ((!stripped && function->name != "frame_dummy") || ++of_the_compiler > 1)
      return refuse("constructor", name_of_code(image, target));
  }
  return std::nullopt;
}

// _init of the start files calls __gmon_start__ where that exists: sub rsp; mov rax, [rip+x]; test; je; call;
// add; ret.
Finding check_init_function(const ElfImage& image) {
  const auto address = image.dynamic(DT_INIT);
  if (!address) return std::nullopt;
  std::string_view code = image.up_to(*address, 27);
  if (code.substr(0, 4) == "\xf3\x0f\x1e\xfa") code.remove_prefix(4);  // endbr64
  static constexpr std::string_view kBefore = "\x48\x83\xec\x08\x48\x8b\x05";
  static constexpr std::string_view kAfter = "\x48\x85\xc0\x74\x02\xff\xd0\x48\x83\xc4\x08\xc3";
  if (code.substr(0, kBefore.size()) == kBefore && code.substr(kBefore.size() + 4, kAfter.size()) == kAfter)
    return std::nullopt;
  return refuse("constructor", "_init is not the compiler's own");
}

Finding check_segments(const ElfImage& image) {
  bool stack_is_data = false;
  for (const Elf64_Phdr& segment : image.segments()) {
    if (segment.p_type == PT_GNU_STACK && (segment.p_flags & PF_X) == 0) stack_is_data = true;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) != 0)
      return refuse("executable stack",
                    fmt::format("segment at {:#x} is writable and executable", segment.p_vaddr));
  }
  if (!stack_is_data) return refuse("executable stack", "PT_GNU_STACK is absent or executable");
  if (image.dynamic(DT_TEXTREL)) return refuse("executable stack", "relocations in code (DT_TEXTREL)");
  return std::nullopt;
}

Finding check_entry_point(const ElfImage& image, std::string_view entry_point) {
  for (const ElfSymbol& symbol : image.symbols())
    if (symbol.exported && symbol.type == STT_FUNC && symbol.name == entry_point) return std::nullopt;
  return refuse("entry point",
                fmt::format("no exported function named {}; declare it extern \"C\"", entry_point));
}

}  // namespace

Result<ObjectVerdict> check_object(std::string_view object, std::string_view entry_point) {
  FIXIT_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::parse(object));
  for (const auto& check : {check_libraries, check_symbols, check_ifuncs, check_initializers,
                            check_init_function, check_segments})
    if (const Finding finding = check(image)) return *finding;
  if (const Finding finding = check_entry_point(image, entry_point)) return *finding;
  return ObjectVerdict{true, "", ""};
}

}  // namespace fixit

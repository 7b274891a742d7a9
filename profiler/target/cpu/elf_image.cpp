#include "profiler/target/cpu/elf_image.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fixit {
namespace {

// A kernel's object has hundreds of these; the limits only keep a crafted file from costing memory.
constexpr uint64_t kMaxEntries = 1u << 20;

Status malformed(std::string_view what) {
  return Status(ErrorCode::kInvalid, fmt::format("shared object: {}", what));
}

template <typename T>
std::optional<T> read_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

ElfSymbol to_symbol(const Elf64_Sym& raw, std::string_view name) {
  ElfSymbol symbol;
  symbol.name = name;
  symbol.value = raw.st_value;
  symbol.size = raw.st_size;
  symbol.defined = raw.st_shndx != SHN_UNDEF;
  const auto binding = ELF64_ST_BIND(raw.st_info);
  const auto visibility = ELF64_ST_VISIBILITY(raw.st_other);
  symbol.exported =
      symbol.defined && binding != STB_LOCAL && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
  symbol.type = ELF64_ST_TYPE(raw.st_info);
  return symbol;
}

}  // namespace

std::string demangled(std::string_view name) {
  int status = 0;
  char* readable = abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && readable != nullptr ? readable : std::string(name);
  std::free(readable);
  return result;
}

Result<ElfImage> ElfImage::parse(std::string_view bytes) {
  ElfImage image;
  image.bytes_ = bytes;
  FIXIT_RETURN_IF_ERROR(image.read_headers());
  FIXIT_RETURN_IF_ERROR(image.read_dynamic());
  FIXIT_RETURN_IF_ERROR(image.read_symbols());
  FIXIT_RETURN_IF_ERROR(image.read_relocations());
  FIXIT_RETURN_IF_ERROR(image.read_sections());
  std::stable_sort(image.functions_.begin(), image.functions_.end(),
                   [](const ElfSymbol& a, const ElfSymbol& b) { return a.value < b.value; });
  return image;
}

Status ElfImage::read_headers() {
  const auto header = read_at<Elf64_Ehdr>(bytes_, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return malformed("not an ELF file");
  header_ = *header;
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_machine != EM_X86_64)
    return malformed("not for x86-64");
  if (header_.e_type != ET_DYN) return malformed("not a shared object");
  if (header_.e_phentsize != sizeof(Elf64_Phdr)) return malformed("program headers have another size");
  for (uint64_t i = 0; i < header_.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(bytes_, header_.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return malformed("program headers lie outside the file");
    if (segment->p_type == PT_LOAD &&
        (segment->p_offset > bytes_.size() || segment->p_filesz > bytes_.size() - segment->p_offset ||
         segment->p_vaddr + segment->p_memsz < segment->p_vaddr || segment->p_filesz > segment->p_memsz))
      return malformed("a segment lies outside the file");
    segments_.push_back(*segment);
  }
  return Status();
}

std::string_view ElfImage::up_to(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const uint64_t inside = address - segment.p_vaddr;
    if (inside >= segment.p_filesz) continue;
    return bytes_.substr(segment.p_offset + inside, std::min(size, segment.p_filesz - inside));
  }
  return {};
}

std::optional<std::string_view> ElfImage::at(uint64_t address, uint64_t size) const {
  const std::string_view found = up_to(address, size);
  if (found.size() != size) return std::nullopt;
  return found;
}

Status ElfImage::read_dynamic() {
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [](const auto& one) { return one.p_type == PT_DYNAMIC; });
  if (segment == segments_.end()) return malformed("no dynamic section");
  // The loader reads it at its address in memory, not at the offset the header claims.
  for (uint64_t i = 0; i < kMaxEntries; ++i) {
    const auto bytes = at(segment->p_vaddr + i * sizeof(Elf64_Dyn), sizeof(Elf64_Dyn));
    if (!bytes) return malformed("the dynamic section has no end");
    const auto entry = *read_at<Elf64_Dyn>(*bytes, 0);
    if (entry.d_tag == DT_NULL) break;
    dynamic_.push_back(entry);
  }
  const auto table = dynamic(DT_STRTAB), size = dynamic(DT_STRSZ);
  if (!table || !size) return malformed("no string table");
  const auto strings = at(*table, *size);
  if (!strings) return malformed("the string table lies outside the file");
  strings_ = *strings;
  return Status();
}

std::optional<uint64_t> ElfImage::dynamic(int64_t tag) const {
  for (const Elf64_Dyn& entry : dynamic_)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return std::nullopt;
}

std::vector<std::string_view> ElfImage::needed() const {
  std::vector<std::string_view> names;
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag != DT_NEEDED) continue;
    const auto name = string_at(strings_, entry.d_un.d_val);
    names.push_back(name.ok() ? *name : std::string_view("(name outside the string table)"));
  }
  return names;
}

Result<std::string_view> ElfImage::string_at(std::string_view table, uint64_t offset) const {
  if (offset >= table.size()) return malformed("a name lies outside its string table");
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return malformed("a name has no end");
  return table.substr(offset, end - offset);
}

// The dynamic symbol table has no size of its own: it follows from the hash table.
Result<uint64_t> ElfImage::symbol_count() const {
  if (const auto hash = dynamic(DT_HASH)) {
    const auto counts = at(*hash, 8);
    if (!counts) return malformed("the hash table lies outside the file");
    return static_cast<uint64_t>(*read_at<uint32_t>(*counts, 4));
  }
  const auto hash = dynamic(DT_GNU_HASH);
  if (!hash) return malformed("no hash table");
  const auto head = at(*hash, 16);
  if (!head) return malformed("the hash table lies outside the file");
  const uint64_t buckets = *read_at<uint32_t>(*head, 0), first = *read_at<uint32_t>(*head, 4),
                 blooms = *read_at<uint32_t>(*head, 8);
  const uint64_t bucket_base = *hash + 16 + blooms * 8;
  uint64_t last = 0;
  for (uint64_t i = 0; i < std::min(buckets, kMaxEntries); ++i) {
    const auto bucket = at(bucket_base + i * 4, 4);
    if (!bucket) return malformed("the hash table lies outside the file");
    last = std::max<uint64_t>(last, *read_at<uint32_t>(*bucket, 0));
  }
  // Nothing exported: the table then says nothing of the undefined symbols, which relocations name.
  if (last < first) return std::max(first, highest_relocated_symbol() + 1);
  for (uint64_t i = last; i < kMaxEntries; ++i) {
    const auto chain = at(bucket_base + buckets * 4 + (i - first) * 4, 4);
    if (!chain) return malformed("the hash table lies outside the file");
    if ((*read_at<uint32_t>(*chain, 0) & 1) != 0) return i + 1;
  }
  return malformed("the hash table has no end");
}

uint64_t ElfImage::highest_relocated_symbol() const {
  uint64_t highest = 0;
  const std::pair<std::optional<uint64_t>, std::optional<uint64_t>> tables[] = {
      {dynamic(DT_RELA), dynamic(DT_RELASZ)}, {dynamic(DT_JMPREL), dynamic(DT_PLTRELSZ)}};
  for (const auto& [table, size] : tables) {
    if (!table || !size || *size / sizeof(Elf64_Rela) > kMaxEntries) continue;
    const auto bytes = at(*table, *size);
    if (!bytes) continue;
    for (uint64_t offset = 0; offset + sizeof(Elf64_Rela) <= *size; offset += sizeof(Elf64_Rela))
      highest = std::max<uint64_t>(highest, ELF64_R_SYM(read_at<Elf64_Rela>(*bytes, offset)->r_info));
  }
  return highest;
}

Status ElfImage::read_symbols() {
  const auto table = dynamic(DT_SYMTAB);
  if (!table) return malformed("no symbol table");
  FIXIT_ASSIGN_OR_RETURN(const uint64_t count, symbol_count());
  if (count > kMaxEntries) return malformed("too many symbols");
  for (uint64_t i = 0; i < count; ++i) {
    const auto bytes = at(*table + i * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    if (!bytes) return malformed("the symbol table lies outside the file");
    const auto raw = *read_at<Elf64_Sym>(*bytes, 0);
    FIXIT_ASSIGN_OR_RETURN(const auto name, string_at(strings_, raw.st_name));
    symbols_.push_back(to_symbol(raw, name));
    if (symbols_.back().defined && symbols_.back().type == STT_FUNC) functions_.push_back(symbols_.back());
  }
  return Status();
}

Status ElfImage::read_relocations() {
  const auto read_table = [&](std::optional<uint64_t> table, std::optional<uint64_t> size) -> Status {
    if (!table || !size) return Status();
    if (*size / sizeof(Elf64_Rela) > kMaxEntries) return malformed("too many relocations");
    const auto bytes = at(*table, *size);
    if (!bytes) return malformed("relocations lie outside the file");
    for (uint64_t offset = 0; offset + sizeof(Elf64_Rela) <= *size; offset += sizeof(Elf64_Rela)) {
      const auto raw = *read_at<Elf64_Rela>(*bytes, offset);
      relocations_.push_back({raw.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info)), raw.r_addend,
                              static_cast<uint32_t>(ELF64_R_SYM(raw.r_info))});
      if (relocations_.back().symbol >= symbols_.size())
        return malformed("a relocation names no known symbol");
    }
    return Status();
  };
  if (dynamic(DT_REL)) return malformed("relocations of a kind that x86-64 has not");
  FIXIT_RETURN_IF_ERROR(read_table(dynamic(DT_RELA), dynamic(DT_RELASZ)));
  return read_table(dynamic(DT_JMPREL), dynamic(DT_PLTRELSZ));
}

Status ElfImage::read_sections() {
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header_.e_shnum && header_.e_shoff != 0; ++i) {
    const auto section = read_at<Elf64_Shdr>(bytes_, header_.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return malformed("section headers lie outside the file");
    sections.push_back(*section);
  }
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR) != 0) {
      const auto bytes = at(section.sh_addr, section.sh_size);
      if (!bytes) return malformed("an executable section lies outside the file");
      code_.push_back({section.sh_addr, *bytes});
    }
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    if (names.sh_offset > bytes_.size() || names.sh_size > bytes_.size() - names.sh_offset) continue;
    const std::string_view table = bytes_.substr(names.sh_offset, names.sh_size);
    for (uint64_t i = 0; i < std::min(section.sh_size / sizeof(Elf64_Sym), kMaxEntries); ++i) {
      const auto raw = read_at<Elf64_Sym>(bytes_, section.sh_offset + i * sizeof(Elf64_Sym));
      if (!raw || ELF64_ST_TYPE(raw->st_info) != STT_FUNC || raw->st_shndx == SHN_UNDEF) continue;
      const auto name = string_at(table, raw->st_name);
      if (name.ok()) functions_.push_back(to_symbol(*raw, *name));
    }
  }
  if (!code_.empty()) return Status();
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      code_.push_back({segment.p_vaddr, bytes_.substr(segment.p_offset, segment.p_filesz)});
  return Status();
}

const ElfSymbol* ElfImage::function_at(uint64_t address) const {
  auto after =
      std::upper_bound(functions_.begin(), functions_.end(), address,
                       [](uint64_t wanted, const ElfSymbol& symbol) { return wanted < symbol.value; });
  return after == functions_.begin() ? nullptr : &*(after - 1);
}

}  // namespace fixit

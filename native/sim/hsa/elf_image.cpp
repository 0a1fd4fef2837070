#include "sim/hsa/elf_image.h"

#include <algorithm>
#include <cstring>

namespace kerncap::sim::rt {
namespace {

constexpr unsigned char kOsAbiAmdgpuHsa = 64;
constexpr Elf64_Half kMachineAmdgpu = 224;
constexpr std::uint64_t kLargestSpan = std::uint64_t{8} << 30;

template <typename T>
bool read_at(std::span<const unsigned char> bytes, std::uint64_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

}  // namespace

std::optional<ElfImage> ElfImage::parse(std::span<const unsigned char> bytes, std::string* error) {
  ElfImage image;
  image.bytes_ = bytes;
  if (!image.read(error)) return std::nullopt;
  return image;
}

std::span<const unsigned char> ElfImage::slice(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || bytes_.size() - offset < size) return {};
  return bytes_.subspan(offset, size);
}

bool ElfImage::read(std::string* error) {
  if (!read_at(bytes_, 0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
      header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB) {
    *error = "not a 64-bit little-endian ELF file";
    return false;
  }
  if (header_.e_machine != kMachineAmdgpu || header_.e_ident[EI_OSABI] != kOsAbiAmdgpuHsa) {
    *error = "not an AMDGPU code object: machine " + std::to_string(header_.e_machine) + ", OS ABI " +
             std::to_string(header_.e_ident[EI_OSABI]);
    return false;
  }
  const unsigned abi = header_.e_ident[EI_ABIVERSION];
  if (abi < 1 || abi > 4) {
    *error = "code object ABI version " + std::to_string(abi) + "; known are 1 to 4 (code object v3 to v6)";
    return false;
  }
  return read_segments(error) && read_sections(error);
}

bool ElfImage::read_segments(std::string* error) {
  for (unsigned i = 0; i < header_.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(bytes_, header_.e_phoff + std::uint64_t{i} * header_.e_phentsize, &segment)) {
      *error = "program headers lie outside the file";
      return false;
    }
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    if (segment.p_filesz > segment.p_memsz ||
        slice(segment.p_offset, segment.p_filesz).size() != segment.p_filesz ||
        segment.p_vaddr + segment.p_memsz < segment.p_vaddr) {
      *error = "segment " + std::to_string(i) + " lies outside the file";
      return false;
    }
    if (loads_.empty()) low_ = segment.p_vaddr;
    low_ = std::min(low_, segment.p_vaddr);
    high_ = std::max(high_, segment.p_vaddr + segment.p_memsz);
    loads_.push_back(segment);
  }
  if (loads_.empty() || high_ - low_ > kLargestSpan) {
    *error = loads_.empty() ? "no loadable segments" : "segments span more than 8 GiB";
    return false;
  }
  return true;
}

bool ElfImage::read_sections(std::string* error) {
  for (unsigned i = 0; i < header_.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(bytes_, header_.e_shoff + std::uint64_t{i} * header_.e_shentsize, &section)) {
      *error = "section headers lie outside the file";
      return false;
    }
    sections_.push_back(section);
  }
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type == SHT_DYNSYM) dynamic_symbols_ = read_symbols(section);
    if (section.sh_type == SHT_SYMTAB) symbols_ = read_symbols(section);
  }
  // Only what the dynamic linker would apply: relocations of unloaded sections are not ours.
  for (const Elf64_Shdr& section : sections_)
    if (section.sh_type == SHT_RELA && (section.sh_flags & SHF_ALLOC) != 0) read_relocations(section);
  return true;
}

std::string_view ElfImage::text_at(const Elf64_Shdr& table, std::uint64_t offset) const {
  auto text = slice(table.sh_offset, table.sh_size);
  if (offset >= text.size()) return {};
  const char* start = reinterpret_cast<const char*>(text.data()) + offset;
  return {start, strnlen(start, text.size() - offset)};
}

std::vector<ElfImage::Symbol> ElfImage::read_symbols(const Elf64_Shdr& table) const {
  std::vector<Symbol> out;
  const Elf64_Shdr* names = section(static_cast<std::uint16_t>(table.sh_link));
  if (names == nullptr || table.sh_entsize < sizeof(Elf64_Sym)) return out;
  for (std::uint64_t i = 0; i < table.sh_size / table.sh_entsize; ++i) {
    Elf64_Sym symbol;
    if (!read_at(bytes_, table.sh_offset + i * table.sh_entsize, &symbol)) break;
    out.push_back({text_at(*names, symbol.st_name), static_cast<unsigned>(ELF64_ST_TYPE(symbol.st_info)),
                   static_cast<unsigned>(ELF64_ST_BIND(symbol.st_info)), symbol.st_shndx, symbol.st_value,
                   symbol.st_size});
  }
  return out;
}

void ElfImage::read_relocations(const Elf64_Shdr& table) {
  if (table.sh_entsize < sizeof(Elf64_Rela)) return;
  for (std::uint64_t i = 0; i < table.sh_size / table.sh_entsize; ++i) {
    Elf64_Rela relocation;
    if (!read_at(bytes_, table.sh_offset + i * table.sh_entsize, &relocation)) break;
    relocations_.push_back({relocation.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info)),
                            static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info)), relocation.r_addend});
  }
}

const Elf64_Shdr* ElfImage::section(std::uint16_t index) const {
  return index != SHN_UNDEF && index < sections_.size() ? &sections_[index] : nullptr;
}

std::span<const unsigned char> ElfImage::section_bytes(std::string_view name) const {
  const Elf64_Shdr* names = section(header_.e_shstrndx);
  if (names == nullptr) return {};
  for (const Elf64_Shdr& s : sections_) {
    if (s.sh_type == SHT_NOBITS || (s.sh_flags & SHF_COMPRESSED) != 0 || text_at(*names, s.sh_name) != name)
      continue;
    return slice(s.sh_offset, s.sh_size);
  }
  return {};
}

}  // namespace kerncap::sim::rt

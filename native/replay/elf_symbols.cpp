#include "replay/elf_symbols.h"

#include <elf.h>

#include <cstring>

#include "replay/error.h"

namespace kerncap::replay {
namespace {

template <typename T>
T read(const std::vector<unsigned char>& content, std::uint64_t offset) {
  if (offset > content.size() || content.size() - offset < sizeof(T)) {
    throw ReplayError(ErrorClass::usage, "the code object ends at byte " + std::to_string(content.size()) +
                                             ", within one of its tables");
  }
  T value;
  std::memcpy(&value, content.data() + offset, sizeof(T));
  return value;
}

}  // namespace

ElfSymbols::ElfSymbols(const std::vector<unsigned char>& content) : content_(content) {
  const auto header = read<Elf64_Ehdr>(content_, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    throw ReplayError(ErrorClass::usage, "not a 64-bit ELF file");
  }
}

ElfSymbol ElfSymbols::find(const std::string& name) const {
  const auto header = read<Elf64_Ehdr>(content_, 0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto table = read<Elf64_Shdr>(content_, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) continue;
    const auto strings = read<Elf64_Shdr>(content_, header.e_shoff + table.sh_link * sizeof(Elf64_Shdr));
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(content_, table.sh_offset + at);
      const std::uint64_t text = strings.sh_offset + symbol.st_name;
      if (symbol.st_shndx == SHN_UNDEF || text + name.size() + 1 > content_.size()) continue;
      if (std::memcmp(content_.data() + text, name.c_str(), name.size() + 1) == 0) {
        return {symbol.st_value, symbol.st_size};
      }
    }
  }
  return {};
}

std::uint64_t ElfSymbols::file_offset(std::uint64_t address, std::uint64_t bytes) const {
  const auto header = read<Elf64_Ehdr>(content_, 0);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(content_, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    if (address + bytes > segment.p_vaddr + segment.p_filesz) continue;
    const std::uint64_t offset = segment.p_offset + (address - segment.p_vaddr);
    if (offset + bytes <= content_.size()) return offset;
  }
  throw ReplayError(ErrorClass::usage, "address " + hex(address) + " is in no segment of the code object");
}

}  // namespace kerncap::replay

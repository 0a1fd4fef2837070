#include "interpose/cuda/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace kerncap::interpose::cuda {
namespace {

class Bytes {
 public:
  Bytes(const void* data, std::size_t size) : data_(static_cast<const char*>(data)), size_(size) {}

  template <typename T>
  bool at(std::uint64_t offset, T& out) const {
    if (offset > size_ || sizeof(T) > size_ - offset) return false;
    std::memcpy(&out, data_ + offset, sizeof(T));
    return true;
  }
  [[nodiscard]] std::string_view text(std::uint64_t offset) const {
    if (offset >= size_) return {};
    return {data_ + offset, ::strnlen(data_ + offset, size_ - offset)};
  }

 private:
  const char* data_;
  std::size_t size_;
};

}  // namespace

Cubin read_cubin(const void* data, std::size_t size) {
  Cubin cubin;
  const Bytes bytes(data, size);
  Elf64_Ehdr header;
  if (!bytes.at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return cubin;
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!bytes.at(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i])) return cubin;
  }
  if (header.e_shstrndx >= sections.size()) return cubin;
  const auto name_of = [&](const Elf64_Shdr& section) {
    return bytes.text(sections[header.e_shstrndx].sh_offset + section.sh_name);
  };
  // Each kernel has the code section .text.NAME; so has a function that is not inlined, but no .nv.info.NAME
  // with parameters. Those are told apart by the flag of their symbol (STO_CUDA_ENTRY).
  constexpr unsigned char kEntry = 0x10;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const std::uint64_t names = sections[section.sh_link].sh_offset;
    for (std::uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!bytes.at(section.sh_offset + i * sizeof symbol, symbol)) return cubin;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections.size()) continue;
      const std::string_view name = bytes.text(names + symbol.st_name);
      if (name.empty()) continue;
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC && (symbol.st_other & kEntry) != 0) cubin.kernels.emplace_back(name);
      if (type == STT_OBJECT && symbol.st_size != 0) {
        const std::string_view where = name_of(sections[symbol.st_shndx]);
        if (where.find("shared") != std::string_view::npos || where.find("debug") != std::string_view::npos)
          continue;
        cubin.variables.push_back({std::string(name), symbol.st_size, where.rfind(".nv.constant", 0) == 0});
      }
    }
  }
  std::sort(cubin.kernels.begin(), cubin.kernels.end());
  return cubin;
}

}  // namespace kerncap::interpose::cuda

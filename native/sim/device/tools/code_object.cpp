#include "sim/device/tools/code_object.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace kerncap::sim::tools {
namespace {

constexpr std::uint64_t kPage = 4096;

template <class T>
const T* at(const std::vector<char>& file, std::uint64_t offset, std::uint64_t count = 1) {
  if (offset + count * sizeof(T) > file.size()) throw std::runtime_error("the ELF file is cut short");
  return reinterpret_cast<const T*>(file.data() + offset);
}

}  // namespace

CodeObject::CodeObject(const std::string& path, AddressSpace* memory) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  const std::vector<char> file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* header = at<Elf64_Ehdr>(file, 0);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != 224 /* EM_AMDGPU */)
    throw std::runtime_error(path + " is not an AMDGPU code object");

  switch (header->e_flags & 0xFF) {  // EF_AMDGPU_MACH: LLVM AMDGPUUsage, "AMDGPU ELF Header e_flags"
    case 0x3F:
      arch_ = Arch::gfx90a;
      break;
    case 0x4C:
      arch_ = Arch::gfx942;
      break;
    default:
      break;
  }
  const auto* segments = at<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
  std::uint64_t end = 0;
  for (unsigned n = 0; n < header->e_phnum; ++n)
    if (segments[n].p_type == PT_LOAD) end = std::max(end, segments[n].p_vaddr + segments[n].p_memsz);
  end = (end + kPage - 1) & ~(kPage - 1);
  void* mapped = mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw std::runtime_error("cannot map " + std::to_string(end) + " bytes for " + path);
  auto* base = static_cast<char*>(mapped);
  for (unsigned n = 0; n < header->e_phnum; ++n) {
    if (segments[n].p_type != PT_LOAD) continue;
    std::memcpy(base + segments[n].p_vaddr, at<char>(file, segments[n].p_offset, segments[n].p_filesz),
                segments[n].p_filesz);
  }
  memory->add({reinterpret_cast<std::uint64_t>(base), end, true, "code"});

  const auto* sections = at<Elf64_Shdr>(file, header->e_shoff, header->e_shnum);
  for (unsigned n = 0; n < header->e_shnum; ++n)
    if ((sections[n].sh_flags & SHF_EXECINSTR) != 0)
      code_end_ = reinterpret_cast<std::uint64_t>(base) + sections[n].sh_addr + sections[n].sh_size;
  const Elf64_Sym* dynamic = nullptr;
  for (const std::uint32_t wanted :
       {static_cast<std::uint32_t>(SHT_DYNSYM), static_cast<std::uint32_t>(SHT_SYMTAB)}) {
    for (unsigned n = 0; n < header->e_shnum; ++n) {
      if (sections[n].sh_type != wanted) continue;
      const auto* symbols =
          at<Elf64_Sym>(file, sections[n].sh_offset, sections[n].sh_size / sizeof(Elf64_Sym));
      if (wanted == SHT_DYNSYM) dynamic = symbols;
      const char* names = at<char>(file, sections[sections[n].sh_link].sh_offset);
      for (std::uint64_t k = 0; k < sections[n].sh_size / sizeof(Elf64_Sym); ++k) {
        const unsigned type = ELF64_ST_TYPE(symbols[k].st_info);
        if (symbols[k].st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT && type != 10))
          continue;
        symbols_[names + symbols[k].st_name] = {reinterpret_cast<std::uint64_t>(base) + symbols[k].st_value,
                                                symbols[k].st_size, type == STT_FUNC};
      }
    }
  }
  for (unsigned n = 0; n < header->e_shnum; ++n) {
    if (sections[n].sh_type != SHT_RELA) continue;
    const std::uint64_t count = sections[n].sh_size / sizeof(Elf64_Rela);
    const auto* entries = at<Elf64_Rela>(file, sections[n].sh_offset, count);
    for (std::uint64_t k = 0; k < count; ++k) {
      const auto type = ELF64_R_TYPE(entries[k].r_info);
      std::uint64_t value =
          reinterpret_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(entries[k].r_addend);
      if (type == 3 /* R_AMDGPU_ABS64 */ && dynamic != nullptr)
        value += dynamic[ELF64_R_SYM(entries[k].r_info)].st_value;
      else if (type != 13 /* R_AMDGPU_RELATIVE64 */)
        throw std::runtime_error("relocation type " + std::to_string(type));
      std::memcpy(base + entries[k].r_offset, &value, 8);
    }
  }
}

std::vector<CodeRange> CodeObject::code() const {
  std::map<std::uint64_t, CodeRange> functions;
  for (const auto& [name, symbol] : symbols_)
    if (symbol.function) functions.try_emplace(symbol.address, CodeRange{symbol.address, symbol.size, name});
  std::vector<CodeRange> out;
  // Functions written in assembly may have no size: each reaches to the next one, or to the end of its
  // section.
  for (auto it = functions.begin(); it != functions.end(); ++it) {
    CodeRange range = it->second;
    const auto next = std::next(it);
    if (range.size == 0) range.size = (next == functions.end() ? code_end_ : next->first) - range.base;
    out.push_back(range);
  }
  return out;
}

}  // namespace kerncap::sim::tools

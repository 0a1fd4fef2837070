#include "interpose/hsa/code_metadata.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "abi/hsa_layouts.h"
#include "interpose/hsa/msgpack.h"

namespace kerncap::interpose {
namespace {

constexpr std::uint32_t kAmdgpuMetadataNote = 32;  // NT_AMDGPU_METADATA

class Elf {
 public:
  Elf(const void* data, std::size_t bytes) : data_(static_cast<const unsigned char*>(data)), bytes_(bytes) {
    header_ = at<Elf64_Ehdr>(0);
    if (header_ == nullptr || std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0 ||
        header_->e_ident[EI_CLASS] != ELFCLASS64 || header_->e_ident[EI_DATA] != ELFDATA2LSB) {
      header_ = nullptr;
    }
  }

  [[nodiscard]] const Elf64_Ehdr* header() const { return header_; }
  [[nodiscard]] const Elf64_Shdr* section(unsigned index) const {
    return at<Elf64_Shdr>(header_->e_shoff + std::uint64_t{index} * header_->e_shentsize);
  }
  [[nodiscard]] const Elf64_Phdr* segment(unsigned index) const {
    return at<Elf64_Phdr>(header_->e_phoff + std::uint64_t{index} * header_->e_phentsize);
  }
  [[nodiscard]] const unsigned char* range(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? data_ + offset : nullptr;
  }
  // The bytes loaded at virtual address `address`.
  [[nodiscard]] const unsigned char* loaded(std::uint64_t address, std::uint64_t bytes) const {
    for (unsigned i = 0; i < header_->e_phnum; ++i) {
      const Elf64_Phdr* s = segment(i);
      if (s == nullptr || s->p_type != PT_LOAD || address < s->p_vaddr || address - s->p_vaddr >= s->p_filesz)
        continue;
      if (bytes > s->p_filesz - (address - s->p_vaddr)) return nullptr;
      return range(s->p_offset + (address - s->p_vaddr), bytes);
    }
    return nullptr;
  }

 private:
  // Images may lie at any address in a fat binary, but always 8-byte aligned in it; unaligned is refused.
  template <typename T>
  const T* at(std::uint64_t offset) const {
    const unsigned char* p = range(offset, sizeof(T));
    if (p == nullptr || reinterpret_cast<std::uintptr_t>(p) % alignof(T) != 0) return nullptr;
    return reinterpret_cast<const T*>(p);
  }

  const unsigned char* data_;
  std::size_t bytes_;
  const Elf64_Ehdr* header_;
};

void read_arguments(MsgpackReader& reader, KernelMetadata& kernel) {
  for (std::uint32_t n = reader.array(); n != 0 && reader.ok(); --n) {
    std::string_view kind;
    std::uint64_t offset = 0;
    for (std::uint32_t fields = reader.map(); fields != 0 && reader.ok(); --fields) {
      const std::string_view key = reader.string();
      if (key == ".value_kind") {
        kind = reader.string();
      } else if (key == ".offset") {
        offset = reader.integer();
      } else {
        reader.skip();
      }
    }
    if (kind == "hidden_hostcall_buffer") kernel.hostcall_offset = static_cast<std::int32_t>(offset);
    if (kind == "hidden_multigrid_sync_arg") kernel.multigrid_offset = static_cast<std::int32_t>(offset);
  }
}

void read_kernels(MsgpackReader& reader, CodeMetadata& code) {
  for (std::uint32_t n = reader.array(); n != 0 && reader.ok(); --n) {
    KernelMetadata kernel;
    std::string symbol;
    for (std::uint32_t fields = reader.map(); fields != 0 && reader.ok(); --fields) {
      const std::string_view key = reader.string();
      if (key == ".symbol") {
        symbol = reader.string();
      } else if (key == ".language") {
        kernel.has_language = true;
        reader.skip();
      } else if (key == ".sgpr_count") {
        kernel.sgpr_count = static_cast<std::uint32_t>(reader.integer());
      } else if (key == ".kernarg_segment_size") {
        kernel.kernarg_bytes = static_cast<std::uint32_t>(reader.integer());
      } else if (key == ".args") {
        read_arguments(reader, kernel);
      } else {
        reader.skip();
      }
    }
    if (symbol.ends_with(".kd")) symbol.resize(symbol.size() - 3);
    if (!symbol.empty() && reader.ok()) code.kernels.emplace(std::move(symbol), kernel);
  }
}

void read_metadata(const unsigned char* data, std::size_t bytes, CodeMetadata& code) {
  MsgpackReader reader(data, bytes);
  for (std::uint32_t n = reader.map(); n != 0 && reader.ok(); --n) {
    if (reader.string() == "amdhsa.kernels") {
      read_kernels(reader, code);
    } else {
      reader.skip();
    }
  }
}

void read_notes(const Elf& elf, CodeMetadata& code) {
  for (unsigned i = 0; i < elf.header()->e_phnum; ++i) {
    const Elf64_Phdr* segment = elf.segment(i);
    if (segment == nullptr || segment->p_type != PT_NOTE) continue;
    const unsigned char* p = elf.range(segment->p_offset, segment->p_filesz);
    if (p == nullptr) continue;
    const unsigned char* end = p + segment->p_filesz;
    while (end - p >= static_cast<std::ptrdiff_t>(sizeof(Elf64_Nhdr))) {
      Elf64_Nhdr note;
      std::memcpy(&note, p, sizeof note);
      p += sizeof note;
      const std::uint64_t name_bytes = (std::uint64_t{note.n_namesz} + 3) & ~std::uint64_t{3};
      const std::uint64_t content_bytes = (std::uint64_t{note.n_descsz} + 3) & ~std::uint64_t{3};
      if (name_bytes + note.n_descsz > static_cast<std::uint64_t>(end - p)) break;
      if (note.n_type == kAmdgpuMetadataNote && note.n_namesz == 7 && std::memcmp(p, "AMDGPU", 7) == 0) {
        read_metadata(p + name_bytes, note.n_descsz, code);
      }
      p += std::min<std::uint64_t>(name_bytes + content_bytes, static_cast<std::uint64_t>(end - p));
    }
  }
}

void read_descriptors(const Elf& elf, CodeMetadata& code) {
  bool hip_unit = false;
  for (unsigned i = 0; i < elf.header()->e_shnum; ++i) {
    const Elf64_Shdr* table = elf.section(i);
    if (table == nullptr || table->sh_type != SHT_DYNSYM || table->sh_entsize != sizeof(Elf64_Sym)) continue;
    const Elf64_Shdr* strings = elf.section(table->sh_link);
    const unsigned char* symbols = elf.range(table->sh_offset, table->sh_size);
    if (strings == nullptr || symbols == nullptr) continue;
    const auto* names = reinterpret_cast<const char*>(elf.range(strings->sh_offset, strings->sh_size));
    if (names == nullptr) continue;
    for (std::uint64_t n = 0; n < table->sh_size / sizeof(Elf64_Sym); ++n) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols + n * sizeof symbol, sizeof symbol);
      if (symbol.st_name >= strings->sh_size) continue;
      const std::string_view name(names + symbol.st_name,
                                  ::strnlen(names + symbol.st_name, strings->sh_size - symbol.st_name));
      // clang names each HIP unit so; without device libraries its metadata has no `.language`.
      if (name.starts_with("__hip_cuid_")) hip_unit = true;
      if (symbol.st_size != 64 || !name.ends_with(".kd")) continue;
      const unsigned char* descriptor = elf.loaded(symbol.st_value, 64);
      if (descriptor == nullptr) continue;
      KernelMetadata& kernel = code.kernels[std::string(name.substr(0, name.size() - 3))];
      kernel.has_descriptor = true;
      std::copy_n(descriptor, 64, kernel.descriptor.begin());
    }
  }
  if (!hip_unit) return;
  for (auto& [symbol, kernel] : code.kernels) kernel.has_language = true;
}

}  // namespace

CodeMetadata read_code_metadata(const void* data, std::size_t bytes) {
  CodeMetadata code;
  const Elf elf(data, bytes);
  if (elf.header() == nullptr) return code;
  read_notes(elf, code);
  read_descriptors(elf, code);
  return code;
}

std::size_t elf_image_bytes(const void* data, std::size_t limit) {
  const Elf elf(data, limit);
  if (elf.header() == nullptr) return limit;
  std::uint64_t end =
      elf.header()->e_shoff + std::uint64_t{elf.header()->e_shnum} * elf.header()->e_shentsize;
  for (unsigned i = 0; i < elf.header()->e_shnum; ++i) {
    const Elf64_Shdr* s = elf.section(i);
    if (s != nullptr && s->sh_type != SHT_NOBITS)
      end = std::max<std::uint64_t>(end, s->sh_offset + s->sh_size);
  }
  return std::min<std::uint64_t>(end, limit);
}

Registers kernel_registers(const KernelMetadata& kernel, const std::string& target) {
  Registers registers;
  if (!kernel.has_descriptor) return registers;
  abi::amd_kernel_descriptor_t descriptor;
  std::memcpy(&descriptor, kernel.descriptor.data(), sizeof descriptor);
  registers.lds_bytes = descriptor.group_segment_fixed_size;
  registers.scratch_bytes = descriptor.private_segment_fixed_size;
  // GRANULATED_WORKITEM_VGPR_COUNT (bits 5:0) and GRANULATED_WAVEFRONT_SGPR_COUNT (9:6) of compute_pgm_rsrc1.
  const std::uint32_t vgpr_granules = (descriptor.compute_pgm_rsrc1 & 63) + 1;
  const std::uint32_t sgpr_field = descriptor.compute_pgm_rsrc1 >> 6 & 15;
  const bool unified_file = target == "gfx90a" || target.starts_with("gfx94") || target.starts_with("gfx95");
  const bool gfx9 = target.size() == 6 && target[3] == '9';
  const bool wave32 =
      (descriptor.kernel_code_properties & abi::AMD_KERNEL_CODE_PROPERTY_WAVEFRONT_SIZE32) != 0;
  registers.vgprs = vgpr_granules * (unified_file || wave32 ? 8 : 4);
  registers.sgprs = gfx9 ? (sgpr_field / 2 + 1) * 16 : kernel.sgpr_count;
  return registers;
}

}  // namespace kerncap::interpose

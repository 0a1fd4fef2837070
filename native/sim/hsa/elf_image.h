// Reading an AMDGPU code object (LLVM AMDGPUUsage, "ELF Code Object"), with every offset checked.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::sim::rt {

class ElfImage {
 public:
  struct Symbol {
    std::string_view name;
    unsigned type = 0;     // STT_*
    unsigned binding = 0;  // STB_*
    std::uint16_t section = 0;
    std::uint64_t value = 0;
    std::uint64_t size = 0;
  };
  struct Relocation {
    std::uint64_t offset;
    std::uint32_t type;
    std::uint32_t symbol;
    std::int64_t addend;
  };

  // `bytes` must outlive the image. On a file that is no AMDGPU code object of version 3 to 6: nullopt and
  // why.
  static std::optional<ElfImage> parse(std::span<const unsigned char> bytes, std::string* error);

  [[nodiscard]] const std::vector<Elf64_Phdr>& load_segments() const { return loads_; }
  [[nodiscard]] std::uint64_t low_address() const { return low_; }
  [[nodiscard]] std::uint64_t high_address() const { return high_; }
  [[nodiscard]] std::uint32_t flags() const { return header_.e_flags; }
  [[nodiscard]] const std::vector<Symbol>& dynamic_symbols() const { return dynamic_symbols_; }
  // Of .symtab; empty when the object is stripped.
  [[nodiscard]] const std::vector<Symbol>& symbols() const { return symbols_; }
  [[nodiscard]] const std::vector<Relocation>& relocations() const { return relocations_; }
  [[nodiscard]] const Elf64_Shdr* section(std::uint16_t index) const;
  // Contents of a section; empty when there is none or it is compressed.
  [[nodiscard]] std::span<const unsigned char> section_bytes(std::string_view name) const;
  [[nodiscard]] std::span<const unsigned char> slice(std::uint64_t offset, std::uint64_t size) const;

 private:
  ElfImage() = default;

  bool read(std::string* error);
  bool read_segments(std::string* error);
  bool read_sections(std::string* error);
  std::vector<Symbol> read_symbols(const Elf64_Shdr& table) const;
  void read_relocations(const Elf64_Shdr& table);
  [[nodiscard]] std::string_view text_at(const Elf64_Shdr& table, std::uint64_t offset) const;

  std::span<const unsigned char> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> loads_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Symbol> dynamic_symbols_, symbols_;
  std::vector<Relocation> relocations_;
  std::uint64_t low_ = 0, high_ = 0;
};

}  // namespace kerncap::sim::rt

// As much of a code object's ELF structure as it takes to find a symbol's bytes in the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kerncap::replay {

struct ElfSymbol {
  std::uint64_t value = 0;  // ELF virtual address; 0: not there
  std::uint64_t size = 0;
};

class ElfSymbols {
 public:
  // `content` must outlive it. Throws ReplayError (usage) if it is no 64-bit ELF file.
  explicit ElfSymbols(const std::vector<unsigned char>& content);

  [[nodiscard]] ElfSymbol find(const std::string& name) const;
  // Throws ReplayError (usage) if [address, address + bytes) is not in a loaded segment of the file.
  [[nodiscard]] std::uint64_t file_offset(std::uint64_t address, std::uint64_t bytes) const;
  [[nodiscard]] const unsigned char* at(std::uint64_t address, std::uint64_t bytes) const {
    return content_.data() + file_offset(address, bytes);
  }

 private:
  const std::vector<unsigned char>& content_;
};

}  // namespace kerncap::replay

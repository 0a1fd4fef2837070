// A minimal mapper of AMDGPU code objects for the test programs: segments, symbols, relative and absolute
// relocations. The product's loader is sim/hsa's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/device/gpu.h"

namespace kerncap::sim::tools {

struct Symbol {
  std::uint64_t address = 0;  // where it is mapped
  std::uint64_t size = 0;
  bool function = false;
};

class CodeObject {
 public:
  // Maps the file and registers its segments with `memory`. Throws std::runtime_error.
  CodeObject(const std::string& path, AddressSpace* memory);
  [[nodiscard]] const std::map<std::string, Symbol>& symbols() const { return symbols_; }
  // All functions, for Gpu::load_code.
  [[nodiscard]] std::vector<CodeRange> code() const;
  // The GPU it is compiled for; nullopt for one that the simulator does not know.
  [[nodiscard]] std::optional<Arch> arch() const { return arch_; }

 private:
  std::optional<Arch> arch_;
  std::map<std::string, Symbol> symbols_;
  std::uint64_t code_end_ = 0;
};

}  // namespace kerncap::sim::tools

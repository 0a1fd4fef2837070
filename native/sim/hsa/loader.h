// Code objects in memory: readers, executables, and what was loaded where.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/hsa.h"
#include "sim/device/gpu.h"
#include "sim/hsa/agent.h"
#include "sim/hsa/dwarf_lines.h"
#include "sim/hsa/elf_image.h"

namespace kerncap::sim::rt {

class Runtime;
struct Executable;

// Where a code object's bytes come from.
struct CodeObjectReader {
  ~CodeObjectReader();
  std::span<const unsigned char> bytes;
  void* mapping = nullptr;  // of a file; null: the program's own memory
  std::uint64_t mapping_bytes = 0;
  int file = -1;  // the program's descriptor, for tools that ask
  std::string uri;
};

struct LoadedSymbol {
  std::string name;  // as in the symbol table: "f.kd" for a kernel
  abi::hsa_symbol_kind_t kind = abi::HSA_SYMBOL_KIND_VARIABLE;
  Agent* agent = nullptr;
  std::uint64_t address = 0;  // of the descriptor, for a kernel
  std::uint64_t size = 0;
  std::uint32_t alignment = 1;
  bool is_constant = false;
  bool is_definition = true;  // false: given by hsa_executable_agent_global_variable_define
  bool exported = true;       // false: bound locally
};

struct LoadedCodeObject {
  Executable* executable = nullptr;
  Agent* agent = nullptr;
  std::uint64_t base = 0;         // of the memory
  std::uint64_t size = 0;         // bytes, as the segments span
  std::uint64_t low_address = 0;  // of the lowest segment in the file
  std::shared_ptr<CodeObjectReader> reader;
  std::vector<Elf64_Phdr> segments;
  std::vector<CodeRange> code;
  std::vector<std::uint64_t> published;  // bases registered with the GPU
  std::vector<std::unique_ptr<LoadedSymbol>> symbols;
  DebugSections debug;

  [[nodiscard]] std::uint64_t delta() const { return base - low_address; }
};

struct Executable {
  abi::hsa_profile_t profile = abi::HSA_PROFILE_BASE;
  abi::hsa_default_float_rounding_mode_t rounding = abi::HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT;
  std::mutex mutex;
  bool frozen = false;
  std::vector<std::unique_ptr<LoadedCodeObject>> objects;
  std::vector<std::unique_ptr<LoadedSymbol>> defined;  // external variables

  std::unordered_multimap<std::string, LoadedSymbol*> by_name;

  [[nodiscard]] LoadedSymbol* find(std::string_view name, const Agent* agent) const;
};

class Loader {
 public:
  explicit Loader(Runtime* runtime) : runtime_(runtime) {}

  abi::hsa_status_t add_reader(std::shared_ptr<CodeObjectReader> reader, abi::hsa_code_object_reader_t* out);
  abi::hsa_status_t add_file_reader(int file, std::uint64_t offset, std::uint64_t size,
                                    abi::hsa_code_object_reader_t* out);
  abi::hsa_status_t remove_reader(abi::hsa_code_object_reader_t reader);
  [[nodiscard]] std::shared_ptr<CodeObjectReader> find_reader(abi::hsa_code_object_reader_t reader) const;

  abi::hsa_executable_t create(abi::hsa_profile_t profile, abi::hsa_default_float_rounding_mode_t rounding);
  [[nodiscard]] std::shared_ptr<Executable> find(abi::hsa_executable_t executable) const;
  abi::hsa_status_t destroy(abi::hsa_executable_t executable);
  [[nodiscard]] std::vector<abi::hsa_executable_t> executables() const;

  // Loads, relocates and checks every instruction. On failure says why on stderr and loads nothing.
  abi::hsa_status_t load(Executable* executable, Agent* agent, std::shared_ptr<CodeObjectReader> reader,
                         LoadedCodeObject** out);

  // The next code object goes to `base`, if that range is free then.
  void place_next(std::uint64_t base) { next_base_.store(base); }
  std::uint64_t take_next_base() { return next_base_.exchange(0); }

  // An external variable of the executable; `executable->mutex` is held.
  void define(Executable* executable, std::unique_ptr<LoadedSymbol> symbol);

  // Null when the handle is not one of a living executable's.
  [[nodiscard]] LoadedSymbol* find_symbol(abi::hsa_executable_symbol_t symbol) const;
  [[nodiscard]] LoadedCodeObject* find_loaded(abi::hsa_loaded_code_object_t object) const;
  // The loaded code object that holds a device address.
  [[nodiscard]] LoadedCodeObject* find_by_address(std::uint64_t address) const;

  // "file:line" of an instruction at `pc`; empty when its code object has no line table.
  [[nodiscard]] std::string source_line(std::uint64_t pc) const;

 private:
  void unload(LoadedCodeObject& object);
  void register_symbol(Executable* executable, LoadedSymbol* symbol);

  Runtime* runtime_;
  std::atomic<std::uint64_t> next_base_{0};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<CodeObjectReader>> readers_;
  std::map<std::uint64_t, std::shared_ptr<Executable>> executables_;
  std::unordered_map<std::uint64_t, LoadedSymbol*> symbols_;  // by handle
  std::map<std::uint64_t, LoadedCodeObject*> by_end_;         // of the memory: last address + 1
};

}  // namespace kerncap::sim::rt

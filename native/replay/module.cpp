#include "replay/module.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/elf_symbols.h"
#include "replay/error.h"

namespace kerncap::replay {
namespace {

using abi::HSA_STATUS_SUCCESS;

}  // namespace

Module::Module(Runtime& runtime, const Agent& agent, std::string name, std::vector<unsigned char> content,
               const std::string& symbol, std::uint64_t at)
    : runtime_(runtime), agent_(agent), name_(std::move(name)), content_(std::move(content)) {
  const auto& core = runtime_.core;
  runtime_.check(
      core.hsa_code_object_reader_create_from_memory_fn(content_.data(), content_.size(), &reader_),
      "reading " + name_);
  runtime_.check(
      core.hsa_executable_create_alt_fn(abi::HSA_PROFILE_FULL, abi::HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                        nullptr, &executable_),
      "creating an executable");
  if (at != 0 && runtime_.sim.place_next != nullptr) runtime_.sim.place_next(at);
  const abi::hsa_status_t loaded =
      core.hsa_executable_load_agent_code_object_fn(executable_, agent_.handle, reader_, nullptr, nullptr);
  const abi::hsa_status_t frozen =
      loaded == HSA_STATUS_SUCCESS ? core.hsa_executable_freeze_fn(executable_, nullptr) : loaded;
  if (frozen != HSA_STATUS_SUCCESS) {
    throw ReplayError(ErrorClass::usage, name_ + " cannot be loaded on this " + agent_.name + " (" +
                                             agent_.isa + "): " + runtime_.status_text(frozen));
  }
  find_kernel(symbol);
  find_base();
}

Module::~Module() {
  if (executable_.handle != 0) runtime_.core.hsa_executable_destroy_fn(executable_);
  if (reader_.handle != 0) runtime_.core.hsa_code_object_reader_destroy_fn(reader_);
}

void Module::find_kernel(const std::string& symbol) {
  const auto& core = runtime_.core;
  abi::hsa_executable_symbol_t found{};
  const std::string descriptor = symbol + ".kd";
  abi::hsa_symbol_kind_t kind{};
  if (core.hsa_executable_get_symbol_by_name_fn(executable_, descriptor.c_str(), &agent_.handle, &found) !=
          HSA_STATUS_SUCCESS ||
      core.hsa_executable_symbol_get_info_fn(found, abi::HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind) !=
          HSA_STATUS_SUCCESS ||
      kind != abi::HSA_SYMBOL_KIND_KERNEL) {
    throw ReplayError(ErrorClass::usage, name_ + " has no kernel " + symbol);
  }
  auto info = [&](abi::hsa_executable_symbol_info_t what, void* value) {
    runtime_.check(core.hsa_executable_symbol_get_info_fn(found, what, value), "examining " + symbol);
  };
  info(abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel_object_);
  info(abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernarg_bytes_);
  info(abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group_bytes_);
  info(abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_bytes_);
  if (agent_.lds_bytes != 0 && group_bytes_ > agent_.lds_bytes) {
    throw ReplayError(ErrorClass::usage, symbol + " in " + name_ + " needs " + std::to_string(group_bytes_) +
                                             kGroupMemory + agent_.name + " has " +
                                             std::to_string(agent_.lds_bytes));
  }
}

void Module::find_base() {
  if (runtime_.loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects == nullptr) return;
  auto visit = [](abi::hsa_executable_t, abi::hsa_loaded_code_object_t object, void* data) {
    auto* self = static_cast<Module*>(data);
    auto info = self->runtime_.loader.hsa_ven_amd_loader_loaded_code_object_get_info;
    info(object, abi::HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &self->base_);
    info(object, abi::HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &self->delta_);
    return HSA_STATUS_SUCCESS;
  };
  runtime_.loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(executable_, visit, this);
}

Range Module::variable(const std::string& name) const {
  const auto& core = runtime_.core;
  abi::hsa_executable_symbol_t found{};
  abi::hsa_symbol_kind_t kind{};
  if (core.hsa_executable_get_symbol_by_name_fn(executable_, name.c_str(), &agent_.handle, &found) !=
          HSA_STATUS_SUCCESS ||
      core.hsa_executable_symbol_get_info_fn(found, abi::HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind) !=
          HSA_STATUS_SUCCESS ||
      kind != abi::HSA_SYMBOL_KIND_VARIABLE) {
    return {};
  }
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  core.hsa_executable_symbol_get_info_fn(found, abi::HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address);
  core.hsa_executable_symbol_get_info_fn(found, abi::HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &bytes);
  return {address, bytes};
}

void Module::bind_data(const snapshot::CaptureReader& capture, const ReplayMemory& memory, bool same) {
  const auto& code = capture.code_object(capture.dispatch.code_object).record;
  if (!same) {
    const Find find = [this](const std::string& name) { return variable(name); };
    find_variables(capture, find);
    const Moved moved = [&](std::uint64_t word, bool* guessed) {
      if (word - code.load_base >= code.load_bytes) return word;
      const std::optional<std::uint64_t> known = of_variable(word);
      *guessed = !known;
      return known.value_or(word + (base_ - code.load_base));
    };
    bind_variables(capture, memory, find, moved);
    return;
  }
  const Moved moved = [&](std::uint64_t word, bool*) {
    return word - code.load_base < code.load_bytes ? word + (base_ - code.load_base) : word;
  };
  for (const snapshot::RegionRecord* region : segments(capture)) {
    const std::uint64_t live = region->address + static_cast<std::uint64_t>(delta_ - code.load_delta);
    add_piece(capture, memory, *region, region->address, live, region->bytes, moved);
  }
}

std::vector<unsigned char> emptied(std::vector<unsigned char> content, const std::string& symbol,
                                   const std::string& arch) {
  const ElfSymbols elf(content);
  const ElfSymbol descriptor = elf.find(symbol + ".kd");
  if (descriptor.value == 0 || descriptor.size < sizeof(abi::amd_kernel_descriptor_t)) {
    throw ReplayError(ErrorClass::usage, "there is no kernel " + symbol);
  }
  abi::amd_kernel_descriptor_t fields;
  std::memcpy(&fields, elf.at(descriptor.value, sizeof(fields)), sizeof(fields));
  const std::uint64_t entry =
      descriptor.value + static_cast<std::uint64_t>(fields.kernel_code_entry_byte_offset);
  const bool gfx11_or_later = arch.rfind("gfx11", 0) == 0 || arch.rfind("gfx12", 0) == 0;
  const std::uint32_t s_endpgm =
      gfx11_or_later ? 0xBFB00000u : 0xBF810000u;  // SOPP opcode 48 there, 1 before
  std::vector<std::uint64_t> entries = {entry};
  if (fields.kernarg_preload != 0) entries.push_back(entry + 256);
  for (const std::uint64_t at : entries) {
    std::memcpy(content.data() + elf.file_offset(at, sizeof(s_endpgm)), &s_endpgm, sizeof(s_endpgm));
  }
  return content;
}

}  // namespace kerncap::replay

// The functions on code object readers, executables and symbols.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sim/hsa/impl.h"
#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

// The kernarg alignment that ROCr answers for every kernel: descriptors do not hold one.
constexpr std::uint32_t kKernargAlignment = 16;

hsa_executable_symbol_t handle_of(const LoadedSymbol* symbol) {
  return {reinterpret_cast<std::uint64_t>(symbol)};
}

std::vector<LoadedSymbol*> symbols_of(Executable* executable, const Agent* agent) {
  std::vector<LoadedSymbol*> out;
  std::lock_guard lock(executable->mutex);
  for (const auto& object : executable->objects)
    for (const auto& symbol : object->symbols)
      if (agent == nullptr || symbol->agent == agent) out.push_back(symbol.get());
  return out;
}

hsa_status_t define_variable(hsa_executable_t handle, Agent* agent, const char* name, void* address) {
  KERNCAP_SIM_RUNTIME(rt);
  if (name == nullptr || address == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  std::lock_guard lock(executable->mutex);
  if (executable->frozen) return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
  if (executable->find(name, agent) != nullptr) return HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED;
  auto symbol = std::make_unique<LoadedSymbol>();
  symbol->name = name;
  symbol->agent = agent;
  symbol->address = reinterpret_cast<std::uint64_t>(address);
  symbol->is_definition = false;
  rt->loader.define(executable.get(), std::move(symbol));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t kernel_info(const LoadedSymbol& symbol, hsa_executable_symbol_info_t attribute, void* value) {
  const auto& kernel = *reinterpret_cast<const amd_kernel_descriptor_t*>(symbol.address);
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      put<std::uint64_t>(value, symbol.address);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
      put<std::uint32_t>(value, kernel.kernarg_size);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
      put<std::uint32_t>(value, kKernargAlignment);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
      put<std::uint32_t>(value, kernel.group_segment_fixed_size);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
      put<std::uint32_t>(value, kernel.private_segment_fixed_size);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
      put<bool>(value, (kernel.kernel_code_properties & AMD_KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK) != 0);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION:
      put<std::uint32_t>(value, 0);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t variable_info(const LoadedSymbol& symbol, hsa_executable_symbol_info_t attribute, void* value) {
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
      put<std::uint64_t>(value, symbol.address);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION:
      put(value, HSA_VARIABLE_ALLOCATION_AGENT);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT:
      put(value, symbol.is_constant ? HSA_VARIABLE_SEGMENT_READONLY : HSA_VARIABLE_SEGMENT_GLOBAL);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT:
      put<std::uint32_t>(value, symbol.alignment);
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
      put<std::uint32_t>(value, static_cast<std::uint32_t>(symbol.size));
      break;
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST:
      put<bool>(value, symbol.is_constant);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

}  // namespace

namespace impl {

hsa_status_t hsa_code_object_reader_create_from_file(hsa_file_t file, hsa_code_object_reader_t* reader) {
  KERNCAP_SIM_RUNTIME(rt);
  if (reader == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->loader.add_file_reader(file, 0, 0, reader);
}

hsa_status_t hsa_code_object_reader_create_from_memory(const void* code_object, std::size_t size,
                                                       hsa_code_object_reader_t* out) {
  KERNCAP_SIM_RUNTIME(rt);
  if (code_object == nullptr || size == 0 || out == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto reader = std::make_shared<CodeObjectReader>();
  reader->bytes = {static_cast<const unsigned char*>(code_object), size};
  char uri[128];
  std::snprintf(uri, sizeof uri, "memory://%d#offset=0x%llx&size=%llu", static_cast<int>(getpid()),
                static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(code_object)),
                static_cast<unsigned long long>(size));
  reader->uri = uri;
  return rt->loader.add_reader(std::move(reader), out);
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  KERNCAP_SIM_RUNTIME(rt);
  return rt->loader.remove_reader(reader);
}

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t rounding,
                                       const char*, hsa_executable_t* executable) {
  KERNCAP_SIM_RUNTIME(rt);
  if (executable == nullptr || profile > HSA_PROFILE_FULL || rounding > HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *executable = rt->loader.create(profile, rounding);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_create(hsa_profile_t profile, hsa_executable_state_t state, const char* options,
                                   hsa_executable_t* executable) {
  hsa_status_t status =
      hsa_executable_create_alt(profile, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, options, executable);
  if (status == HSA_STATUS_SUCCESS && state == HSA_EXECUTABLE_STATE_FROZEN)
    status = hsa_executable_freeze(*executable, options);
  return status;
}

hsa_status_t hsa_executable_destroy(hsa_executable_t executable) {
  KERNCAP_SIM_RUNTIME(rt);
  return rt->loader.destroy(executable);
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t handle, hsa_agent_t agent_handle,
                                                   hsa_code_object_reader_t reader_handle, const char*,
                                                   hsa_loaded_code_object_t* loaded) {
  KERNCAP_SIM_RUNTIME(rt);
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  Agent* agent = rt->find_gpu(agent_handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  std::shared_ptr<CodeObjectReader> reader = rt->loader.find_reader(reader_handle);
  if (reader == nullptr) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER;
  {
    std::lock_guard lock(executable->mutex);
    if (executable->frozen) return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
  }
  LoadedCodeObject* object = nullptr;
  hsa_status_t status = rt->loader.load(executable.get(), agent, std::move(reader), &object);
  if (status == HSA_STATUS_SUCCESS && loaded != nullptr)
    loaded->handle = reinterpret_cast<std::uint64_t>(object);
  return status;
}

// Program code objects went with HSAIL.
hsa_status_t hsa_executable_load_program_code_object(hsa_executable_t, hsa_code_object_reader_t, const char*,
                                                     hsa_loaded_code_object_t*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}

hsa_status_t hsa_executable_freeze(hsa_executable_t handle, const char*) {
  KERNCAP_SIM_RUNTIME(rt);
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  std::lock_guard lock(executable->mutex);
  if (executable->frozen) return HSA_STATUS_ERROR_FROZEN_EXECUTABLE;
  executable->frozen = true;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_get_info(hsa_executable_t handle, hsa_executable_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  std::lock_guard lock(executable->mutex);
  switch (attribute) {
    case HSA_EXECUTABLE_INFO_PROFILE:
      put(value, executable->profile);
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_INFO_STATE:
      put(value, executable->frozen ? HSA_EXECUTABLE_STATE_FROZEN : HSA_EXECUTABLE_STATE_UNFROZEN);
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
      put(value, executable->rounding);
      return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_executable_global_variable_define(hsa_executable_t executable, const char* name,
                                                   void* address) {
  return define_variable(executable, nullptr, name, address);
}

hsa_status_t hsa_executable_agent_global_variable_define(hsa_executable_t executable, hsa_agent_t handle,
                                                         const char* name, void* address) {
  KERNCAP_SIM_RUNTIME(rt);
  Agent* agent = rt->find_agent(handle);
  return agent == nullptr ? HSA_STATUS_ERROR_INVALID_AGENT
                          : define_variable(executable, agent, name, address);
}

hsa_status_t hsa_executable_readonly_variable_define(hsa_executable_t executable, hsa_agent_t agent,
                                                     const char* name, void* address) {
  return hsa_executable_agent_global_variable_define(executable, agent, name, address);
}

hsa_status_t hsa_executable_validate(hsa_executable_t handle, std::uint32_t* result) {
  KERNCAP_SIM_RUNTIME(rt);
  if (result == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->loader.find(handle) == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  *result = 0;  // what does not hold together was refused when it was loaded
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_validate_alt(hsa_executable_t handle, const char*, std::uint32_t* result) {
  return hsa_executable_validate(handle, result);
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t handle, const char* name,
                                               const hsa_agent_t* agent, hsa_executable_symbol_t* symbol) {
  KERNCAP_SIM_RUNTIME(rt);
  if (name == nullptr || symbol == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  Agent* found_agent = agent != nullptr ? rt->find_agent(*agent) : nullptr;
  if (agent != nullptr && found_agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  std::lock_guard lock(executable->mutex);
  LoadedSymbol* found = executable->find(name, found_agent);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
  *symbol = handle_of(found);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_get_symbol(hsa_executable_t executable, const char*, const char* name,
                                       hsa_agent_t agent, std::int32_t, hsa_executable_symbol_t* symbol) {
  return hsa_executable_get_symbol_by_name(executable, name, agent.handle != 0 ? &agent : nullptr, symbol);
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t handle,
                                            hsa_executable_symbol_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const LoadedSymbol* symbol = rt->loader.find_symbol(handle);
  if (symbol == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL;
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      put(value, symbol->kind);
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      put<std::uint32_t>(value, static_cast<std::uint32_t>(symbol->name.size()));
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
      std::memcpy(value, symbol->name.data(), symbol->name.size());  // without a terminator, as ROCr
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH:
      put<std::uint32_t>(value, 0);
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME:
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_AGENT:
      put(value, symbol->agent != nullptr ? symbol->agent->handle() : hsa_agent_t{0});
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE:
      put(value, symbol->exported ? HSA_SYMBOL_LINKAGE_PROGRAM : HSA_SYMBOL_LINKAGE_MODULE);
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION:
      put<bool>(value, symbol->is_definition);
      return HSA_STATUS_SUCCESS;
    default:
      return symbol->kind == HSA_SYMBOL_KIND_KERNEL ? kernel_info(*symbol, attribute, value)
                                                    : variable_info(*symbol, attribute, value);
  }
}

hsa_status_t hsa_executable_iterate_symbols(hsa_executable_t handle,
                                            hsa_status_t (*callback)(hsa_executable_t,
                                                                     hsa_executable_symbol_t, void*),
                                            void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  for (LoadedSymbol* symbol : symbols_of(executable.get(), nullptr))
    if (hsa_status_t status = callback(handle, handle_of(symbol), data); status != HSA_STATUS_SUCCESS)
      return status;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_iterate_agent_symbols(hsa_executable_t handle, hsa_agent_t agent_handle,
                                                  hsa_status_t (*callback)(hsa_executable_t, hsa_agent_t,
                                                                           hsa_executable_symbol_t, void*),
                                                  void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  Agent* agent = rt->find_agent(agent_handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  for (LoadedSymbol* symbol : symbols_of(executable.get(), agent)) {
    hsa_status_t status = callback(handle, agent_handle, handle_of(symbol), data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_iterate_program_symbols(hsa_executable_t handle,
                                                    hsa_status_t (*callback)(hsa_executable_t,
                                                                             hsa_executable_symbol_t, void*),
                                                    void*) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->loader.find(handle) == nullptr ? HSA_STATUS_ERROR_INVALID_EXECUTABLE : HSA_STATUS_SUCCESS;
}

// The code-object functions of HSA 1.0 worked on HSAIL's own format.
hsa_status_t hsa_code_object_serialize(hsa_code_object_t,
                                       hsa_status_t (*)(std::size_t, hsa_callback_data_t, void**),
                                       hsa_callback_data_t, const char*, void**, std::size_t*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_code_object_deserialize(void*, std::size_t, const char*, hsa_code_object_t*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_code_object_destroy(hsa_code_object_t) { return HSA_STATUS_ERROR_INVALID_CODE_OBJECT; }
hsa_status_t hsa_code_object_get_info(hsa_code_object_t, hsa_code_object_info_t, void*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_code_object_get_symbol(hsa_code_object_t, const char*, hsa_code_symbol_t*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_code_object_get_symbol_from_name(hsa_code_object_t, const char*, const char*,
                                                  hsa_code_symbol_t*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_code_symbol_get_info(hsa_code_symbol_t, hsa_code_symbol_info_t, void*) {
  return HSA_STATUS_ERROR_INVALID_CODE_SYMBOL;
}
hsa_status_t hsa_code_object_iterate_symbols(hsa_code_object_t,
                                             hsa_status_t (*)(hsa_code_object_t, hsa_code_symbol_t, void*),
                                             void*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}
hsa_status_t hsa_executable_load_code_object(hsa_executable_t, hsa_agent_t, hsa_code_object_t, const char*) {
  return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}

}  // namespace impl
}  // namespace kerncap::sim::rt

#include "sim/hsa/loader_extension.h"

#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

hsa_ven_amd_loader_code_object_storage_type_t storage_type(const CodeObjectReader& reader) {
  return reader.file >= 0 ? HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE
                          : HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY;
}

// Simulated device memory is host memory: code can be read where it lies.
hsa_status_t query_host_address(const void* device_address, const void** host_address) {
  KERNCAP_SIM_RUNTIME(rt);
  if (device_address == nullptr || host_address == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->loader.find_by_address(reinterpret_cast<std::uint64_t>(device_address)) == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *host_address = device_address;
  return HSA_STATUS_SUCCESS;
}

// Calls `visit` for each loaded code object of each executable.
template <typename Visit>
void for_each_loaded(Runtime* rt, Visit visit) {
  for (hsa_executable_t handle : rt->loader.executables()) {
    std::shared_ptr<Executable> executable = rt->loader.find(handle);
    if (executable == nullptr) continue;
    std::lock_guard lock(executable->mutex);
    for (const auto& object : executable->objects) visit(handle, *object);
  }
}

hsa_status_t query_segment_descriptors(hsa_ven_amd_loader_segment_descriptor_t* out, std::size_t* count) {
  KERNCAP_SIM_RUNTIME(rt);
  if (count == nullptr || (out == nullptr) != (*count == 0)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::vector<hsa_ven_amd_loader_segment_descriptor_t> all;
  for_each_loaded(rt, [&all](hsa_executable_t handle, const LoadedCodeObject& object) {
    for (const Elf64_Phdr& segment : object.segments) {
      hsa_ven_amd_loader_segment_descriptor_t d{};
      d.agent = object.agent->handle();
      d.executable = handle;
      d.code_object_storage_type = storage_type(*object.reader);
      d.code_object_storage_base = object.reader->bytes.data();
      d.code_object_storage_size = object.reader->bytes.size();
      d.code_object_storage_offset = segment.p_offset;
      d.segment_base = reinterpret_cast<const void*>(object.delta() + segment.p_vaddr);
      d.segment_size = segment.p_memsz;
      all.push_back(d);
    }
  });
  if (out == nullptr) {
    *count = all.size();
    return HSA_STATUS_SUCCESS;
  }
  if (*count != all.size()) return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
  std::copy(all.begin(), all.end(), out);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t query_executable(const void* device_address, hsa_executable_t* executable) {
  KERNCAP_SIM_RUNTIME(rt);
  if (device_address == nullptr || executable == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  LoadedCodeObject* object = rt->loader.find_by_address(reinterpret_cast<std::uint64_t>(device_address));
  if (object == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  executable->handle = reinterpret_cast<std::uint64_t>(object->executable);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t iterate_loaded_code_objects(hsa_executable_t handle,
                                         hsa_status_t (*callback)(hsa_executable_t, hsa_loaded_code_object_t,
                                                                  void*),
                                         void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Executable> executable = rt->loader.find(handle);
  if (executable == nullptr) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
  std::vector<hsa_loaded_code_object_t> objects;
  {
    std::lock_guard lock(executable->mutex);
    for (const auto& object : executable->objects)
      objects.push_back({reinterpret_cast<std::uint64_t>(object.get())});
  }
  for (hsa_loaded_code_object_t object : objects)
    if (hsa_status_t status = callback(handle, object, data); status != HSA_STATUS_SUCCESS) return status;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t loaded_code_object_get_info(hsa_loaded_code_object_t handle,
                                         hsa_ven_amd_loader_loaded_code_object_info_t attribute,
                                         void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const LoadedCodeObject* object = rt->loader.find_loaded(handle);
  if (object == nullptr) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  const CodeObjectReader& reader = *object->reader;
  switch (attribute) {
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE:
      put(value, hsa_executable_t{reinterpret_cast<std::uint64_t>(object->executable)});
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND:
      put(value, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT);
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT:
      put(value, object->agent->handle());
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE:
      put(value, storage_type(reader));
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE:
      put(value, reinterpret_cast<std::uint64_t>(reader.bytes.data()));
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE:
      put(value, static_cast<std::uint64_t>(reader.bytes.size()));
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_FILE:
      if (reader.file < 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
      put(value, reader.file);
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA:
      put(value, static_cast<std::int64_t>(object->delta()));
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE:
      put(value, object->base);
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE:
      put(value, object->size);
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH:
      put(value, static_cast<std::uint32_t>(reader.uri.size()));
      break;
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI:
      std::memcpy(value, reader.uri.data(), reader.uri.size());  // without a terminator, as ROCr
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t reader_from_file_with_offset_size(hsa_file_t file, std::size_t offset, std::size_t size,
                                               hsa_code_object_reader_t* reader) {
  KERNCAP_SIM_RUNTIME(rt);
  if (reader == nullptr || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->loader.add_file_reader(file, offset, size, reader);
}

hsa_status_t iterate_executables(hsa_status_t (*callback)(hsa_executable_t, void*), void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  for (hsa_executable_t executable : rt->loader.executables())
    if (hsa_status_t status = callback(executable, data); status != HSA_STATUS_SUCCESS) return status;
  return HSA_STATUS_SUCCESS;
}

}  // namespace

const hsa_ven_amd_loader_1_03_pfn_t& loader_extension_table() {
  static constexpr hsa_ven_amd_loader_1_03_pfn_t table{
      query_host_address,          query_segment_descriptors,   query_executable,
      iterate_loaded_code_objects, loaded_code_object_get_info, reader_from_file_with_offset_size,
      iterate_executables};
  return table;
}

}  // namespace kerncap::sim::rt

// The functions on virtual memory, SVM ranges and memory of other processes.
#include "sim/hsa/copy_engine.h"
#include "sim/hsa/impl.h"
#include "sim/hsa/runtime.h"

// ROCr looks for virtual memory support after it has loaded tools; until then these calls fail.
#define KERNCAP_SIM_VMEM(name) \
  KERNCAP_SIM_RUNTIME(name);   \
  if (!name->vmem_ready()) return HSA_STATUS_ERROR

namespace kerncap::sim::rt::impl {

hsa_status_t hsa_amd_vmem_address_reserve(void** va, std::size_t size, std::uint64_t address,
                                          std::uint64_t flags) {
  return hsa_amd_vmem_address_reserve_align(va, size, address, 0, flags);
}

hsa_status_t hsa_amd_vmem_address_reserve_align(void** va, std::size_t size, std::uint64_t address,
                                                std::uint64_t alignment, std::uint64_t) {
  KERNCAP_SIM_VMEM(rt);
  if (va == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->vmem.reserve(va, size, address, alignment);
}

hsa_status_t hsa_amd_vmem_address_free(void* va, std::size_t size) {
  KERNCAP_SIM_VMEM(rt);
  return rt->vmem.free(va, size);
}

hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t handle, std::size_t size,
                                        hsa_amd_memory_type_t type, std::uint64_t,
                                        hsa_amd_vmem_alloc_handle_t* memory_handle) {
  KERNCAP_SIM_VMEM(rt);
  if (memory_handle == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* pool = rt->find_pool(handle.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
  return rt->vmem.create(pool, size, type, &memory_handle->handle);
}

hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t memory_handle) {
  KERNCAP_SIM_VMEM(rt);
  return rt->vmem.release(memory_handle.handle);
}

hsa_status_t hsa_amd_vmem_map(void* va, std::size_t size, std::size_t in_offset,
                              hsa_amd_vmem_alloc_handle_t memory_handle, std::uint64_t) {
  KERNCAP_SIM_VMEM(rt);
  return rt->vmem.map(va, size, in_offset, memory_handle.handle);
}

hsa_status_t hsa_amd_vmem_unmap(void* va, std::size_t size) {
  KERNCAP_SIM_VMEM(rt);
  return rt->vmem.unmap(va, size);
}

hsa_status_t hsa_amd_vmem_set_access(void* va, std::size_t size, const hsa_amd_memory_access_desc_t* desc,
                                     std::size_t desc_cnt) {
  KERNCAP_SIM_VMEM(rt);
  if (desc == nullptr || desc_cnt == 0 || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->vmem.set_access(va, size, desc, desc_cnt);
}

hsa_status_t hsa_amd_vmem_get_access(void* va, hsa_access_permission_t* perms, hsa_agent_t agent_handle) {
  KERNCAP_SIM_VMEM(rt);
  if (perms == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(agent_handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return rt->vmem.get_access(va, agent, perms);
}

hsa_status_t hsa_amd_vmem_export_shareable_handle(int* dmabuf_fd, hsa_amd_vmem_alloc_handle_t handle,
                                                  std::uint64_t) {
  KERNCAP_SIM_VMEM(rt);
  if (dmabuf_fd == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->vmem.export_handle(handle.handle, dmabuf_fd);
}

hsa_status_t hsa_amd_vmem_import_shareable_handle(int dmabuf_fd, hsa_amd_vmem_alloc_handle_t* handle) {
  KERNCAP_SIM_VMEM(rt);
  if (handle == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->vmem.import_handle(dmabuf_fd, &handle->handle);
}

hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t* memory_handle, void* addr) {
  KERNCAP_SIM_VMEM(rt);
  if (memory_handle == nullptr || addr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->vmem.retain(addr, &memory_handle->handle);
}

hsa_status_t hsa_amd_vmem_get_alloc_properties_from_handle(hsa_amd_vmem_alloc_handle_t memory_handle,
                                                           hsa_amd_memory_pool_t* pool,
                                                           hsa_amd_memory_type_t* type) {
  KERNCAP_SIM_VMEM(rt);
  if (pool == nullptr || type == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* found = nullptr;
  hsa_status_t status = rt->vmem.properties(memory_handle.handle, &found, type);
  if (status == HSA_STATUS_SUCCESS) pool->handle = found->handle();
  return status;
}

hsa_status_t hsa_amd_svm_attributes_set(void* ptr, std::size_t size,
                                        hsa_amd_svm_attribute_pair_t* attribute_list,
                                        std::size_t attribute_count) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || size == 0 || (attribute_list == nullptr && attribute_count != 0))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->svm.set(reinterpret_cast<std::uint64_t>(ptr), size, attribute_list, attribute_count);
}

hsa_status_t hsa_amd_svm_attributes_get(void* ptr, std::size_t size,
                                        hsa_amd_svm_attribute_pair_t* attribute_list,
                                        std::size_t attribute_count) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || size == 0 || attribute_list == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->svm.get(reinterpret_cast<std::uint64_t>(ptr), size, attribute_list, attribute_count);
}

// Memory does not move; what remains of a prefetch is its order among signals.
hsa_status_t hsa_amd_svm_prefetch_async(void* ptr, std::size_t size, hsa_agent_t agent,
                                        std::uint32_t num_dep_signals, const hsa_signal_t* dep_signals,
                                        hsa_signal_t completion_signal) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || size == 0 || (num_dep_signals != 0 && dep_signals == nullptr))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* found = rt->find_agent(agent);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  std::vector<SignalRef> dependencies;
  for (std::uint32_t i = 0; i < num_dep_signals; ++i) dependencies.emplace_back(&rt->signals, dep_signals[i]);
  Agent* gpu = found->is_gpu ? found : rt->agents()[1].get();
  gpu->copies->enqueue(std::move(dependencies), SignalRef(&rt->signals, completion_signal), size, [] {});
  rt->svm.prefetched(reinterpret_cast<std::uint64_t>(ptr), size, agent);
  return HSA_STATUS_SUCCESS;
}

// The memory of a simulated GPU belongs to one process.
hsa_status_t hsa_amd_ipc_memory_create(void*, std::size_t, hsa_amd_ipc_memory_t*) {
  return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}
hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t*, std::size_t, std::uint32_t,
                                       const hsa_agent_t*, void**) {
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t hsa_amd_ipc_memory_detach(void*) { return HSA_STATUS_ERROR_INVALID_ARGUMENT; }
hsa_status_t hsa_amd_ipc_signal_create(hsa_signal_t, hsa_amd_ipc_signal_t*) {
  return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}
hsa_status_t hsa_amd_ipc_signal_attach(const hsa_amd_ipc_signal_t*, hsa_signal_t*) {
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t hsa_amd_portable_export_dmabuf(const void*, std::size_t, int*, std::uint64_t*) {
  return HSA_STATUS_ERROR_INVALID_ALLOCATION;
}
hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void*, std::size_t, int*, std::uint64_t*,
                                               std::uint64_t) {
  return HSA_STATUS_ERROR_INVALID_ALLOCATION;
}
hsa_status_t hsa_amd_portable_close_dmabuf(int) { return HSA_STATUS_ERROR_INVALID_ARGUMENT; }
hsa_status_t hsa_amd_interop_map_buffer(std::uint32_t, hsa_agent_t*, int, std::uint32_t, std::size_t*, void**,
                                        std::size_t*, const void**) {
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t hsa_amd_interop_unmap_buffer(void*) { return HSA_STATUS_ERROR_INVALID_ARGUMENT; }

// Streaming performance monitors do not exist here.
hsa_status_t hsa_amd_spm_acquire(hsa_agent_t) { return HSA_STATUS_ERROR; }
hsa_status_t hsa_amd_spm_release(hsa_agent_t) { return HSA_STATUS_ERROR; }
hsa_status_t hsa_amd_spm_set_dest_buffer(hsa_agent_t, std::size_t, std::uint32_t*, std::uint32_t*, void*,
                                         bool*) {
  return HSA_STATUS_ERROR;
}
hsa_status_t hsa_amd_enable_logging(std::uint8_t*, void*) { return HSA_STATUS_SUCCESS; }

}  // namespace kerncap::sim::rt::impl

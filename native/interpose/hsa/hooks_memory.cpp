// Allocations, mappings and copies: followed, and held back while a capture saves memory.

#include "interpose/hsa/api.h"
#include "interpose/hsa/hooks.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// The process, ready for its first allocation; null while inert.
Process* prepared() {
  Process* p = process();
  if (p != nullptr) p->prepare();
  return p;
}

// What changes, moves or unmaps memory waits for the end of a capture; what frees it is put off until then.
Process* settled() {
  Process* p = prepared();
  if (p != nullptr) p->captures.wait_while_active();
  return p;
}

bool good(hsa_status_t status) { return status == HSA_STATUS_SUCCESS; }

hsa_status_t pool_allocate(hsa_amd_memory_pool_t pool, std::size_t size, std::uint32_t flags, void** ptr) {
  Process* p = prepared();
  const hsa_status_t status = api().amd.hsa_amd_memory_pool_allocate_fn(pool, size, flags, ptr);
  if (good(status) && p != nullptr) p->allocations.pool_allocated(pool, *ptr, size);
  return status;
}

// The entry goes before the memory does: another thread may be given the same address at once.
hsa_status_t pool_free(void* ptr) {
  Process* p = prepared();
  if (p == nullptr) return api().amd.hsa_amd_memory_pool_free_fn(ptr);
  const auto free_now = [p, ptr] {
    p->allocations.freed(ptr);
    return api().amd.hsa_amd_memory_pool_free_fn(ptr);
  };
  return p->captures.put_off(free_now) ? HSA_STATUS_SUCCESS : free_now();
}

hsa_status_t memory_allocate(hsa_region_t region, std::size_t size, void** ptr) {
  Process* p = prepared();
  const hsa_status_t status = api().core.hsa_memory_allocate_fn(region, size, ptr);
  if (good(status) && p != nullptr) p->allocations.region_allocated(region, *ptr, size);
  return status;
}

hsa_status_t memory_free(void* ptr) {
  Process* p = prepared();
  if (p == nullptr) return api().core.hsa_memory_free_fn(ptr);
  const auto free_now = [p, ptr] {
    p->allocations.freed(ptr);
    return api().core.hsa_memory_free_fn(ptr);
  };
  return p->captures.put_off(free_now) ? HSA_STATUS_SUCCESS : free_now();
}

hsa_status_t allow_access(std::uint32_t count, const hsa_agent_t* agents, const std::uint32_t* flags,
                          const void* ptr) {
  const hsa_status_t status = api().amd.hsa_amd_agents_allow_access_fn(count, agents, flags, ptr);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.access_allowed(ptr, count, agents);
  return status;
}

hsa_status_t memory_lock(void* host, std::size_t size, hsa_agent_t* agents, int count, void** agent_ptr) {
  const hsa_status_t status = api().amd.hsa_amd_memory_lock_fn(host, size, agents, count, agent_ptr);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.locked(host, size, agents, count, *agent_ptr);
  return status;
}

hsa_status_t lock_to_pool(void* host, std::size_t size, hsa_agent_t* agents, int count,
                          hsa_amd_memory_pool_t pool, std::uint32_t flags, void** agent_ptr) {
  const hsa_status_t status =
      api().amd.hsa_amd_memory_lock_to_pool_fn(host, size, agents, count, pool, flags, agent_ptr);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.locked(host, size, agents, count, *agent_ptr);
  return status;
}

hsa_status_t memory_unlock(void* host) {
  if (Process* p = settled()) p->allocations.unlocked(host);
  return api().amd.hsa_amd_memory_unlock_fn(host);
}

hsa_status_t svm_attributes_set(void* ptr, std::size_t size, hsa_amd_svm_attribute_pair_t* list,
                                std::size_t count) {
  Process* p = settled();
  const hsa_status_t status = api().amd.hsa_amd_svm_attributes_set_fn(ptr, size, list, count);
  if (good(status) && p != nullptr) p->allocations.svm_attributes(ptr, size, list, count);
  return status;
}

hsa_status_t ipc_attach(const hsa_amd_ipc_memory_t* handle, std::size_t length, std::uint32_t count,
                        const hsa_agent_t* agents, void** ptr) {
  const hsa_status_t status = api().amd.hsa_amd_ipc_memory_attach_fn(handle, length, count, agents, ptr);
  Process* p = prepared();
  if (good(status) && p != nullptr)
    p->allocations.attached(*ptr, length, count, agents, "hsa_amd_ipc_memory_attach");
  return status;
}

hsa_status_t ipc_detach(void* ptr) {
  if (Process* p = settled()) p->allocations.detached(ptr);
  return api().amd.hsa_amd_ipc_memory_detach_fn(ptr);
}

hsa_status_t interop_map(std::uint32_t count, hsa_agent_t* agents, int handle, std::uint32_t flags,
                         std::size_t* size, void** ptr, std::size_t* metadata_size, const void** metadata) {
  const hsa_status_t status = api().amd.hsa_amd_interop_map_buffer_fn(count, agents, handle, flags, size, ptr,
                                                                      metadata_size, metadata);
  Process* p = prepared();
  if (good(status) && p != nullptr)
    p->allocations.attached(*ptr, *size, count, agents, "hsa_amd_interop_map_buffer");
  return status;
}

hsa_status_t interop_unmap(void* ptr) {
  if (Process* p = settled()) p->allocations.detached(ptr);
  return api().amd.hsa_amd_interop_unmap_buffer_fn(ptr);
}

hsa_status_t vmem_handle_create(hsa_amd_memory_pool_t pool, std::size_t size, hsa_amd_memory_type_t type,
                                std::uint64_t flags, hsa_amd_vmem_alloc_handle_t* handle) {
  const hsa_status_t status = api().amd.hsa_amd_vmem_handle_create_fn(pool, size, type, flags, handle);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.handle_created(handle->handle, pool);
  return status;
}

hsa_status_t vmem_import(int dmabuf, hsa_amd_vmem_alloc_handle_t* handle) {
  const hsa_status_t status = api().amd.hsa_amd_vmem_import_shareable_handle_fn(dmabuf, handle);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.handle_imported(handle->handle);
  return status;
}

hsa_status_t vmem_map(void* va, std::size_t size, std::size_t in_offset, hsa_amd_vmem_alloc_handle_t handle,
                      std::uint64_t flags) {
  const hsa_status_t status = api().amd.hsa_amd_vmem_map_fn(va, size, in_offset, handle, flags);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->allocations.mapped(va, size, handle.handle);
  return status;
}

hsa_status_t vmem_unmap(void* va, std::size_t size) {
  if (Process* p = settled()) p->allocations.unmapped(va, size);
  return api().amd.hsa_amd_vmem_unmap_fn(va, size);
}

hsa_status_t vmem_set_access(void* va, std::size_t size, const hsa_amd_memory_access_desc_t* list,
                             std::size_t count) {
  Process* p = settled();
  const hsa_status_t status = api().amd.hsa_amd_vmem_set_access_fn(va, size, list, count);
  if (good(status) && p != nullptr) p->allocations.vmem_access(va, size, list, count);
  return status;
}

hsa_status_t memory_copy(void* dst, const void* src, std::size_t size) {
  settled();
  return api().core.hsa_memory_copy_fn(dst, src, size);
}

hsa_status_t async_copy(void* dst, hsa_agent_t dst_agent, const void* src, hsa_agent_t src_agent,
                        std::size_t size, std::uint32_t count, const hsa_signal_t* signals,
                        hsa_signal_t completion) {
  if (Process* p = settled()) p->copies.started(completion);
  return api().amd.hsa_amd_memory_async_copy_fn(dst, dst_agent, src, src_agent, size, count, signals,
                                                completion);
}

hsa_status_t async_copy_on_engine(void* dst, hsa_agent_t dst_agent, const void* src, hsa_agent_t src_agent,
                                  std::size_t size, std::uint32_t count, const hsa_signal_t* signals,
                                  hsa_signal_t completion, hsa_amd_sdma_engine_id_t engine, bool force) {
  if (Process* p = settled()) p->copies.started(completion);
  return api().amd.hsa_amd_memory_async_copy_on_engine_fn(dst, dst_agent, src, src_agent, size, count,
                                                          signals, completion, engine, force);
}

hsa_status_t async_copy_rect(const hsa_pitched_ptr_t* dst, const hsa_dim3_t* dst_offset,
                             const hsa_pitched_ptr_t* src, const hsa_dim3_t* src_offset,
                             const hsa_dim3_t* range, hsa_agent_t agent, hsa_amd_copy_direction_t direction,
                             std::uint32_t count, const hsa_signal_t* signals, hsa_signal_t completion) {
  if (Process* p = settled()) p->copies.started(completion);
  return api().amd.hsa_amd_memory_async_copy_rect_fn(dst, dst_offset, src, src_offset, range, agent,
                                                     direction, count, signals, completion);
}

hsa_status_t memory_fill(void* ptr, std::uint32_t value, std::size_t count) {
  settled();
  return api().amd.hsa_amd_memory_fill_fn(ptr, value, count);
}

hsa_status_t signal_destroy(hsa_signal_t signal) {
  if (Process* p = process()) p->copies.destroyed(signal);
  return api().core.hsa_signal_destroy_fn(signal);
}

}  // namespace

void install_memory_hooks(CoreApiTable& core, AmdExtTable& amd) {
  put(core, &CoreApiTable::hsa_memory_allocate_fn, &memory_allocate);
  put(core, &CoreApiTable::hsa_memory_free_fn, &memory_free);
  put(core, &CoreApiTable::hsa_memory_copy_fn, &memory_copy);
  put(core, &CoreApiTable::hsa_signal_destroy_fn, &signal_destroy);
  put(amd, &AmdExtTable::hsa_amd_memory_pool_allocate_fn, &pool_allocate);
  put(amd, &AmdExtTable::hsa_amd_memory_pool_free_fn, &pool_free);
  put(amd, &AmdExtTable::hsa_amd_agents_allow_access_fn, &allow_access);
  put(amd, &AmdExtTable::hsa_amd_memory_lock_fn, &memory_lock);
  put(amd, &AmdExtTable::hsa_amd_memory_lock_to_pool_fn, &lock_to_pool);
  put(amd, &AmdExtTable::hsa_amd_memory_unlock_fn, &memory_unlock);
  put(amd, &AmdExtTable::hsa_amd_svm_attributes_set_fn, &svm_attributes_set);
  put(amd, &AmdExtTable::hsa_amd_ipc_memory_attach_fn, &ipc_attach);
  put(amd, &AmdExtTable::hsa_amd_ipc_memory_detach_fn, &ipc_detach);
  put(amd, &AmdExtTable::hsa_amd_interop_map_buffer_fn, &interop_map);
  put(amd, &AmdExtTable::hsa_amd_interop_unmap_buffer_fn, &interop_unmap);
  put(amd, &AmdExtTable::hsa_amd_vmem_handle_create_fn, &vmem_handle_create);
  put(amd, &AmdExtTable::hsa_amd_vmem_import_shareable_handle_fn, &vmem_import);
  put(amd, &AmdExtTable::hsa_amd_vmem_map_fn, &vmem_map);
  put(amd, &AmdExtTable::hsa_amd_vmem_unmap_fn, &vmem_unmap);
  put(amd, &AmdExtTable::hsa_amd_vmem_set_access_fn, &vmem_set_access);
  put(amd, &AmdExtTable::hsa_amd_memory_async_copy_fn, &async_copy);
  put(amd, &AmdExtTable::hsa_amd_memory_async_copy_on_engine_fn, &async_copy_on_engine);
  put(amd, &AmdExtTable::hsa_amd_memory_async_copy_rect_fn, &async_copy_rect);
  put(amd, &AmdExtTable::hsa_amd_memory_fill_fn, &memory_fill);
}

}  // namespace kerncap::interpose

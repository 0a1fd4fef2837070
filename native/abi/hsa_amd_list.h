// The functions of AmdExtTable as of ROCm 6.4 and the two that follow; older runtimes have a prefix of it.
// Each line is X(return type, name, (parameters), (arguments)), in table order: the order is the ABI.
#pragma once

#define KERNCAP_HSA_AMD_POOL(X)                                                                           \
  X(hsa_status_t, hsa_amd_coherency_get_type, (hsa_agent_t agent, hsa_amd_coherency_type_t * type),       \
    (agent, type))                                                                                        \
  X(hsa_status_t, hsa_amd_coherency_set_type, (hsa_agent_t agent, hsa_amd_coherency_type_t type),         \
    (agent, type))                                                                                        \
  X(hsa_status_t, hsa_amd_profiling_set_profiler_enabled, (hsa_queue_t * queue, int enable),              \
    (queue, enable))                                                                                      \
  X(hsa_status_t, hsa_amd_profiling_async_copy_enable, (bool enable), (enable))                           \
  X(hsa_status_t, hsa_amd_profiling_get_dispatch_time,                                                    \
    (hsa_agent_t agent, hsa_signal_t signal, hsa_amd_profiling_dispatch_time_t * time),                   \
    (agent, signal, time))                                                                                \
  X(hsa_status_t, hsa_amd_profiling_get_async_copy_time,                                                  \
    (hsa_signal_t signal, hsa_amd_profiling_async_copy_time_t * time), (signal, time))                    \
  X(hsa_status_t, hsa_amd_profiling_convert_tick_to_system_domain,                                        \
    (hsa_agent_t agent, std::uint64_t agent_tick, std::uint64_t* system_tick),                            \
    (agent, agent_tick, system_tick))                                                                     \
  X(hsa_status_t, hsa_amd_signal_async_handler,                                                           \
    (hsa_signal_t signal, hsa_signal_condition_t cond, hsa_signal_value_t value,                          \
     hsa_amd_signal_handler handler, void* arg),                                                          \
    (signal, cond, value, handler, arg))                                                                  \
  X(hsa_status_t, hsa_amd_async_function, (void (*callback)(void*), void* arg), (callback, arg))          \
  X(std::uint32_t, hsa_amd_signal_wait_any,                                                               \
    (std::uint32_t signal_count, hsa_signal_t* signals, hsa_signal_condition_t* conds,                    \
     hsa_signal_value_t* values, std::uint64_t timeout_hint, hsa_wait_state_t wait_hint,                  \
     hsa_signal_value_t* satisfying_value),                                                               \
    (signal_count, signals, conds, values, timeout_hint, wait_hint, satisfying_value))                    \
  X(hsa_status_t, hsa_amd_queue_cu_set_mask,                                                              \
    (const hsa_queue_t* queue, std::uint32_t num_cu_mask_count, const std::uint32_t* cu_mask),            \
    (queue, num_cu_mask_count, cu_mask))                                                                  \
  X(hsa_status_t, hsa_amd_memory_pool_get_info,                                                           \
    (hsa_amd_memory_pool_t memory_pool, hsa_amd_memory_pool_info_t attribute, void* value),               \
    (memory_pool, attribute, value))                                                                      \
  X(hsa_status_t, hsa_amd_agent_iterate_memory_pools,                                                     \
    (hsa_agent_t agent, hsa_status_t(*callback)(hsa_amd_memory_pool_t, void*), void* data),               \
    (agent, callback, data))                                                                              \
  X(hsa_status_t, hsa_amd_memory_pool_allocate,                                                           \
    (hsa_amd_memory_pool_t memory_pool, std::size_t size, std::uint32_t flags, void** ptr),               \
    (memory_pool, size, flags, ptr))                                                                      \
  X(hsa_status_t, hsa_amd_memory_pool_free, (void* ptr), (ptr))                                           \
  X(hsa_status_t, hsa_amd_memory_async_copy,                                                              \
    (void* dst, hsa_agent_t dst_agent, const void* src, hsa_agent_t src_agent, std::size_t size,          \
     std::uint32_t num_dep_signals, const hsa_signal_t* dep_signals, hsa_signal_t completion_signal),     \
    (dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals, completion_signal))              \
  X(hsa_status_t, hsa_amd_memory_async_copy_on_engine,                                                    \
    (void* dst, hsa_agent_t dst_agent, const void* src, hsa_agent_t src_agent, std::size_t size,          \
     std::uint32_t num_dep_signals, const hsa_signal_t* dep_signals, hsa_signal_t completion_signal,      \
     hsa_amd_sdma_engine_id_t engine_id, bool force_copy_on_sdma),                                        \
    (dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals, completion_signal, engine_id,    \
     force_copy_on_sdma))                                                                                 \
  X(hsa_status_t, hsa_amd_memory_copy_engine_status,                                                      \
    (hsa_agent_t dst_agent, hsa_agent_t src_agent, std::uint32_t* engine_ids_mask),                       \
    (dst_agent, src_agent, engine_ids_mask))                                                              \
  X(hsa_status_t, hsa_amd_agent_memory_pool_get_info,                                                     \
    (hsa_agent_t agent, hsa_amd_memory_pool_t memory_pool, hsa_amd_agent_memory_pool_info_t attribute,    \
     void* value),                                                                                        \
    (agent, memory_pool, attribute, value))                                                               \
  X(hsa_status_t, hsa_amd_agents_allow_access,                                                            \
    (std::uint32_t num_agents, const hsa_agent_t* agents, const std::uint32_t* flags, const void* ptr),   \
    (num_agents, agents, flags, ptr))                                                                     \
  X(hsa_status_t, hsa_amd_memory_pool_can_migrate,                                                        \
    (hsa_amd_memory_pool_t src_memory_pool, hsa_amd_memory_pool_t dst_memory_pool, bool* result),         \
    (src_memory_pool, dst_memory_pool, result))                                                           \
  X(hsa_status_t, hsa_amd_memory_migrate,                                                                 \
    (const void* ptr, hsa_amd_memory_pool_t memory_pool, std::uint32_t flags), (ptr, memory_pool, flags)) \
  X(hsa_status_t, hsa_amd_memory_lock,                                                                    \
    (void* host_ptr, std::size_t size, hsa_agent_t* agents, int num_agent, void** agent_ptr),             \
    (host_ptr, size, agents, num_agent, agent_ptr))                                                       \
  X(hsa_status_t, hsa_amd_memory_unlock, (void* host_ptr), (host_ptr))                                    \
  X(hsa_status_t, hsa_amd_memory_fill, (void* ptr, std::uint32_t value, std::size_t count),               \
    (ptr, value, count))

#define KERNCAP_HSA_AMD_POINTER(X)                                                                        \
  X(hsa_status_t, hsa_amd_interop_map_buffer,                                                             \
    (std::uint32_t num_agents, hsa_agent_t* agents, int interop_handle, std::uint32_t flags,              \
     std::size_t* size, void** ptr, std::size_t* metadata_size, const void** metadata),                   \
    (num_agents, agents, interop_handle, flags, size, ptr, metadata_size, metadata))                      \
  X(hsa_status_t, hsa_amd_interop_unmap_buffer, (void* ptr), (ptr))                                       \
  X(hsa_status_t, hsa_amd_image_create,                                                                   \
    (hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor,                               \
     const hsa_amd_image_descriptor_t* image_layout, const void* image_data,                              \
     hsa_access_permission_t access_permission, hsa_ext_image_t* image),                                  \
    (agent, image_descriptor, image_layout, image_data, access_permission, image))                        \
  X(hsa_status_t, hsa_amd_pointer_info,                                                                   \
    (const void* ptr, hsa_amd_pointer_info_t* info, void* (*alloc)(std::size_t),                          \
     std::uint32_t* num_agents_accessible, hsa_agent_t** accessible),                                     \
    (ptr, info, alloc, num_agents_accessible, accessible))                                                \
  X(hsa_status_t, hsa_amd_pointer_info_set_userdata, (const void* ptr, void* userdata), (ptr, userdata))  \
  X(hsa_status_t, hsa_amd_ipc_memory_create, (void* ptr, std::size_t len, hsa_amd_ipc_memory_t* handle),  \
    (ptr, len, handle))                                                                                   \
  X(hsa_status_t, hsa_amd_ipc_memory_attach,                                                              \
    (const hsa_amd_ipc_memory_t* handle, std::size_t len, std::uint32_t num_agents,                       \
     const hsa_agent_t* mapping_agents, void** mapped_ptr),                                               \
    (handle, len, num_agents, mapping_agents, mapped_ptr))                                                \
  X(hsa_status_t, hsa_amd_ipc_memory_detach, (void* mapped_ptr), (mapped_ptr))                            \
  X(hsa_status_t, hsa_amd_signal_create,                                                                  \
    (hsa_signal_value_t initial_value, std::uint32_t num_consumers, const hsa_agent_t* consumers,         \
     std::uint64_t attributes, hsa_signal_t* signal),                                                     \
    (initial_value, num_consumers, consumers, attributes, signal))                                        \
  X(hsa_status_t, hsa_amd_ipc_signal_create, (hsa_signal_t signal, hsa_amd_ipc_signal_t * handle),        \
    (signal, handle))                                                                                     \
  X(hsa_status_t, hsa_amd_ipc_signal_attach, (const hsa_amd_ipc_signal_t* handle, hsa_signal_t* signal),  \
    (handle, signal))                                                                                     \
  X(hsa_status_t, hsa_amd_register_system_event_handler,                                                  \
    (hsa_amd_system_event_callback_t callback, void* data), (callback, data))                             \
  X(hsa_status_t, hsa_amd_queue_intercept_create,                                                         \
    (hsa_agent_t agent_handle, std::uint32_t size, hsa_queue_type32_t type,                               \
     void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t private_segment_size, \
     std::uint32_t group_segment_size, hsa_queue_t** queue),                                              \
    (agent_handle, size, type, callback, data, private_segment_size, group_segment_size, queue))          \
  X(hsa_status_t, hsa_amd_queue_intercept_register,                                                       \
    (hsa_queue_t * queue, hsa_amd_queue_intercept_handler callback, void* user_data),                     \
    (queue, callback, user_data))                                                                         \
  X(hsa_status_t, hsa_amd_queue_set_priority, (hsa_queue_t * queue, hsa_amd_queue_priority_t priority),   \
    (queue, priority))                                                                                    \
  X(hsa_status_t, hsa_amd_memory_async_copy_rect,                                                         \
    (const hsa_pitched_ptr_t* dst, const hsa_dim3_t* dst_offset, const hsa_pitched_ptr_t* src,            \
     const hsa_dim3_t* src_offset, const hsa_dim3_t* range, hsa_agent_t copy_agent,                       \
     hsa_amd_copy_direction_t dir, std::uint32_t num_dep_signals, const hsa_signal_t* dep_signals,        \
     hsa_signal_t completion_signal),                                                                     \
    (dst, dst_offset, src, src_offset, range, copy_agent, dir, num_dep_signals, dep_signals,              \
     completion_signal))                                                                                  \
  X(hsa_status_t, hsa_amd_runtime_queue_create_register,                                                  \
    (hsa_amd_runtime_queue_notifier callback, void* user_data), (callback, user_data))                    \
  X(hsa_status_t, hsa_amd_memory_lock_to_pool,                                                            \
    (void* host_ptr, std::size_t size, hsa_agent_t* agents, int num_agent, hsa_amd_memory_pool_t pool,    \
     std::uint32_t flags, void** agent_ptr),                                                              \
    (host_ptr, size, agents, num_agent, pool, flags, agent_ptr))                                          \
  X(hsa_status_t, hsa_amd_register_deallocation_callback,                                                 \
    (void* ptr, hsa_amd_deallocation_callback_t callback, void* user_data), (ptr, callback, user_data))   \
  X(hsa_status_t, hsa_amd_deregister_deallocation_callback,                                               \
    (void* ptr, hsa_amd_deallocation_callback_t callback), (ptr, callback))                               \
  X(hsa_status_t, hsa_amd_signal_value_pointer,                                                           \
    (hsa_signal_t signal, volatile hsa_signal_value_t * *value_ptr), (signal, value_ptr))

#define KERNCAP_HSA_AMD_VMEM(X)                                                                              \
  X(hsa_status_t, hsa_amd_svm_attributes_set,                                                                \
    (void* ptr, std::size_t size, hsa_amd_svm_attribute_pair_t* attribute_list,                              \
     std::size_t attribute_count),                                                                           \
    (ptr, size, attribute_list, attribute_count))                                                            \
  X(hsa_status_t, hsa_amd_svm_attributes_get,                                                                \
    (void* ptr, std::size_t size, hsa_amd_svm_attribute_pair_t* attribute_list,                              \
     std::size_t attribute_count),                                                                           \
    (ptr, size, attribute_list, attribute_count))                                                            \
  X(hsa_status_t, hsa_amd_svm_prefetch_async,                                                                \
    (void* ptr, std::size_t size, hsa_agent_t agent, std::uint32_t num_dep_signals,                          \
     const hsa_signal_t* dep_signals, hsa_signal_t completion_signal),                                       \
    (ptr, size, agent, num_dep_signals, dep_signals, completion_signal))                                     \
  X(hsa_status_t, hsa_amd_spm_acquire, (hsa_agent_t preferred_agent), (preferred_agent))                     \
  X(hsa_status_t, hsa_amd_spm_release, (hsa_agent_t preferred_agent), (preferred_agent))                     \
  X(hsa_status_t, hsa_amd_spm_set_dest_buffer,                                                               \
    (hsa_agent_t preferred_agent, std::size_t size_in_bytes, std::uint32_t* timeout,                         \
     std::uint32_t* size_copied, void* dest, bool* is_data_loss),                                            \
    (preferred_agent, size_in_bytes, timeout, size_copied, dest, is_data_loss))                              \
  X(hsa_status_t, hsa_amd_queue_cu_get_mask,                                                                 \
    (const hsa_queue_t* queue, std::uint32_t num_cu_mask_count, std::uint32_t* cu_mask),                     \
    (queue, num_cu_mask_count, cu_mask))                                                                     \
  X(hsa_status_t, hsa_amd_portable_export_dmabuf,                                                            \
    (const void* ptr, std::size_t size, int* dmabuf, std::uint64_t* offset), (ptr, size, dmabuf, offset))    \
  X(hsa_status_t, hsa_amd_portable_close_dmabuf, (int dmabuf), (dmabuf))                                     \
  X(hsa_status_t, hsa_amd_vmem_address_reserve,                                                              \
    (void** va, std::size_t size, std::uint64_t address, std::uint64_t flags), (va, size, address, flags))   \
  X(hsa_status_t, hsa_amd_vmem_address_free, (void* va, std::size_t size), (va, size))                       \
  X(hsa_status_t, hsa_amd_vmem_handle_create,                                                                \
    (hsa_amd_memory_pool_t pool, std::size_t size, hsa_amd_memory_type_t type, std::uint64_t flags,          \
     hsa_amd_vmem_alloc_handle_t* memory_handle),                                                            \
    (pool, size, type, flags, memory_handle))                                                                \
  X(hsa_status_t, hsa_amd_vmem_handle_release, (hsa_amd_vmem_alloc_handle_t memory_handle), (memory_handle)) \
  X(hsa_status_t, hsa_amd_vmem_map,                                                                          \
    (void* va, std::size_t size, std::size_t in_offset, hsa_amd_vmem_alloc_handle_t memory_handle,           \
     std::uint64_t flags),                                                                                   \
    (va, size, in_offset, memory_handle, flags))                                                             \
  X(hsa_status_t, hsa_amd_vmem_unmap, (void* va, std::size_t size), (va, size))                              \
  X(hsa_status_t, hsa_amd_vmem_set_access,                                                                   \
    (void* va, std::size_t size, const hsa_amd_memory_access_desc_t* desc, std::size_t desc_cnt),            \
    (va, size, desc, desc_cnt))                                                                              \
  X(hsa_status_t, hsa_amd_vmem_get_access,                                                                   \
    (void* va, hsa_access_permission_t* perms, hsa_agent_t agent_handle), (va, perms, agent_handle))         \
  X(hsa_status_t, hsa_amd_vmem_export_shareable_handle,                                                      \
    (int* dmabuf_fd, hsa_amd_vmem_alloc_handle_t handle, std::uint64_t flags), (dmabuf_fd, handle, flags))   \
  X(hsa_status_t, hsa_amd_vmem_import_shareable_handle,                                                      \
    (int dmabuf_fd, hsa_amd_vmem_alloc_handle_t* handle), (dmabuf_fd, handle))                               \
  X(hsa_status_t, hsa_amd_vmem_retain_alloc_handle,                                                          \
    (hsa_amd_vmem_alloc_handle_t * memory_handle, void* addr), (memory_handle, addr))                        \
  X(hsa_status_t, hsa_amd_vmem_get_alloc_properties_from_handle,                                             \
    (hsa_amd_vmem_alloc_handle_t memory_handle, hsa_amd_memory_pool_t * pool, hsa_amd_memory_type_t * type), \
    (memory_handle, pool, type))                                                                             \
  X(hsa_status_t, hsa_amd_agent_set_async_scratch_limit, (hsa_agent_t agent, std::size_t threshold),         \
    (agent, threshold))                                                                                      \
  X(hsa_status_t, hsa_amd_queue_get_info,                                                                    \
    (hsa_queue_t * queue, hsa_queue_info_attribute_t attribute, void* value), (queue, attribute, value))     \
  X(hsa_status_t, hsa_amd_vmem_address_reserve_align,                                                        \
    (void** va, std::size_t size, std::uint64_t address, std::uint64_t alignment, std::uint64_t flags),      \
    (va, size, address, alignment, flags))                                                                   \
  X(hsa_status_t, hsa_amd_enable_logging, (std::uint8_t* flags, void* file), (flags, file))                  \
  X(std::uint32_t, hsa_amd_signal_wait_all,                                                                  \
    (std::uint32_t signal_count, hsa_signal_t* signals, hsa_signal_condition_t* conds,                       \
     hsa_signal_value_t* values, std::uint64_t timeout_hint, hsa_wait_state_t wait_hint,                     \
     hsa_signal_value_t* satisfying_values),                                                                 \
    (signal_count, signals, conds, values, timeout_hint, wait_hint, satisfying_values))                      \
  X(hsa_status_t, hsa_amd_memory_get_preferred_copy_engine,                                                  \
    (hsa_agent_t dst_agent, hsa_agent_t src_agent, std::uint32_t* recommended_ids_mask),                     \
    (dst_agent, src_agent, recommended_ids_mask))                                                            \
  X(hsa_status_t, hsa_amd_portable_export_dmabuf_v2,                                                         \
    (const void* ptr, std::size_t size, int* dmabuf, std::uint64_t* offset, std::uint64_t flags),            \
    (ptr, size, dmabuf, offset, flags))

#define KERNCAP_HSA_AMD_FUNCTIONS(X) \
  KERNCAP_HSA_AMD_POOL(X)            \
  KERNCAP_HSA_AMD_POINTER(X)         \
  KERNCAP_HSA_AMD_VMEM(X)

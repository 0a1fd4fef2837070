// The functions of CoreApiTable, from which the table, the declarations and the exports are made.
// Each line is X(return type, name, (parameters), (arguments)), in table order: the order is the ABI.
#pragma once

#define KERNCAP_HSA_CORE_QUEUE_AND_MEMORY(X)                                                                \
  X(hsa_status_t, hsa_init, (), ())                                                                         \
  X(hsa_status_t, hsa_shut_down, (), ())                                                                    \
  X(hsa_status_t, hsa_system_get_info, (hsa_system_info_t attribute, void* value), (attribute, value))      \
  X(hsa_status_t, hsa_system_extension_supported,                                                           \
    (std::uint16_t extension, std::uint16_t version_major, std::uint16_t version_minor, bool* result),      \
    (extension, version_major, version_minor, result))                                                      \
  X(hsa_status_t, hsa_system_get_extension_table,                                                           \
    (std::uint16_t extension, std::uint16_t version_major, std::uint16_t version_minor, void* table),       \
    (extension, version_major, version_minor, table))                                                       \
  X(hsa_status_t, hsa_iterate_agents, (hsa_status_t(*callback)(hsa_agent_t, void*), void* data),            \
    (callback, data))                                                                                       \
  X(hsa_status_t, hsa_agent_get_info, (hsa_agent_t agent, hsa_agent_info_t attribute, void* value),         \
    (agent, attribute, value))                                                                              \
  X(hsa_status_t, hsa_queue_create,                                                                         \
    (hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,                                        \
     void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t private_segment_size,   \
     std::uint32_t group_segment_size, hsa_queue_t** queue),                                                \
    (agent, size, type, callback, data, private_segment_size, group_segment_size, queue))                   \
  X(hsa_status_t, hsa_soft_queue_create,                                                                    \
    (hsa_region_t region, std::uint32_t size, hsa_queue_type32_t type, std::uint32_t features,              \
     hsa_signal_t doorbell_signal, hsa_queue_t** queue),                                                    \
    (region, size, type, features, doorbell_signal, queue))                                                 \
  X(hsa_status_t, hsa_queue_destroy, (hsa_queue_t * queue), (queue))                                        \
  X(hsa_status_t, hsa_queue_inactivate, (hsa_queue_t * queue), (queue))                                     \
  X(std::uint64_t, hsa_queue_load_read_index_scacquire, (const hsa_queue_t* queue), (queue))                \
  X(std::uint64_t, hsa_queue_load_read_index_relaxed, (const hsa_queue_t* queue), (queue))                  \
  X(std::uint64_t, hsa_queue_load_write_index_scacquire, (const hsa_queue_t* queue), (queue))               \
  X(std::uint64_t, hsa_queue_load_write_index_relaxed, (const hsa_queue_t* queue), (queue))                 \
  X(void, hsa_queue_store_write_index_relaxed, (const hsa_queue_t* queue, std::uint64_t value),             \
    (queue, value))                                                                                         \
  X(void, hsa_queue_store_write_index_screlease, (const hsa_queue_t* queue, std::uint64_t value),           \
    (queue, value))                                                                                         \
  X(std::uint64_t, hsa_queue_cas_write_index_scacq_screl,                                                   \
    (const hsa_queue_t* queue, std::uint64_t expected, std::uint64_t value), (queue, expected, value))      \
  X(std::uint64_t, hsa_queue_cas_write_index_scacquire,                                                     \
    (const hsa_queue_t* queue, std::uint64_t expected, std::uint64_t value), (queue, expected, value))      \
  X(std::uint64_t, hsa_queue_cas_write_index_relaxed,                                                       \
    (const hsa_queue_t* queue, std::uint64_t expected, std::uint64_t value), (queue, expected, value))      \
  X(std::uint64_t, hsa_queue_cas_write_index_screlease,                                                     \
    (const hsa_queue_t* queue, std::uint64_t expected, std::uint64_t value), (queue, expected, value))      \
  X(std::uint64_t, hsa_queue_add_write_index_scacq_screl, (const hsa_queue_t* queue, std::uint64_t value),  \
    (queue, value))                                                                                         \
  X(std::uint64_t, hsa_queue_add_write_index_scacquire, (const hsa_queue_t* queue, std::uint64_t value),    \
    (queue, value))                                                                                         \
  X(std::uint64_t, hsa_queue_add_write_index_relaxed, (const hsa_queue_t* queue, std::uint64_t value),      \
    (queue, value))                                                                                         \
  X(std::uint64_t, hsa_queue_add_write_index_screlease, (const hsa_queue_t* queue, std::uint64_t value),    \
    (queue, value))                                                                                         \
  X(void, hsa_queue_store_read_index_relaxed, (const hsa_queue_t* queue, std::uint64_t value),              \
    (queue, value))                                                                                         \
  X(void, hsa_queue_store_read_index_screlease, (const hsa_queue_t* queue, std::uint64_t value),            \
    (queue, value))                                                                                         \
  X(hsa_status_t, hsa_agent_iterate_regions,                                                                \
    (hsa_agent_t agent, hsa_status_t(*callback)(hsa_region_t, void*), void* data), (agent, callback, data)) \
  X(hsa_status_t, hsa_region_get_info, (hsa_region_t region, hsa_region_info_t attribute, void* value),     \
    (region, attribute, value))                                                                             \
  X(hsa_status_t, hsa_agent_get_exception_policies,                                                         \
    (hsa_agent_t agent, hsa_profile_t profile, std::uint16_t* mask), (agent, profile, mask))                \
  X(hsa_status_t, hsa_agent_extension_supported,                                                            \
    (std::uint16_t extension, hsa_agent_t agent, std::uint16_t version_major, std::uint16_t version_minor,  \
     bool* result),                                                                                         \
    (extension, agent, version_major, version_minor, result))                                               \
  X(hsa_status_t, hsa_memory_register, (void* ptr, std::size_t size), (ptr, size))                          \
  X(hsa_status_t, hsa_memory_deregister, (void* ptr, std::size_t size), (ptr, size))                        \
  X(hsa_status_t, hsa_memory_allocate, (hsa_region_t region, std::size_t size, void** ptr),                 \
    (region, size, ptr))                                                                                    \
  X(hsa_status_t, hsa_memory_free, (void* ptr), (ptr))                                                      \
  X(hsa_status_t, hsa_memory_copy, (void* dst, const void* src, std::size_t size), (dst, src, size))        \
  X(hsa_status_t, hsa_memory_assign_agent, (void* ptr, hsa_agent_t agent, hsa_access_permission_t access),  \
    (ptr, agent, access))

#define KERNCAP_HSA_CORE_SIGNAL(X)                                                                           \
  X(hsa_status_t, hsa_signal_create,                                                                         \
    (hsa_signal_value_t initial_value, std::uint32_t num_consumers, const hsa_agent_t* consumers,            \
     hsa_signal_t* signal),                                                                                  \
    (initial_value, num_consumers, consumers, signal))                                                       \
  X(hsa_status_t, hsa_signal_destroy, (hsa_signal_t signal), (signal))                                       \
  X(hsa_signal_value_t, hsa_signal_load_relaxed, (hsa_signal_t signal), (signal))                            \
  X(hsa_signal_value_t, hsa_signal_load_scacquire, (hsa_signal_t signal), (signal))                          \
  X(void, hsa_signal_store_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_store_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))      \
  X(hsa_signal_value_t, hsa_signal_wait_relaxed,                                                             \
    (hsa_signal_t signal, hsa_signal_condition_t condition, hsa_signal_value_t compare_value,                \
     std::uint64_t timeout_hint, hsa_wait_state_t wait_state_hint),                                          \
    (signal, condition, compare_value, timeout_hint, wait_state_hint))                                       \
  X(hsa_signal_value_t, hsa_signal_wait_scacquire,                                                           \
    (hsa_signal_t signal, hsa_signal_condition_t condition, hsa_signal_value_t compare_value,                \
     std::uint64_t timeout_hint, hsa_wait_state_t wait_state_hint),                                          \
    (signal, condition, compare_value, timeout_hint, wait_state_hint))                                       \
  X(void, hsa_signal_and_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))          \
  X(void, hsa_signal_and_scacquire, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_and_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_and_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))      \
  X(void, hsa_signal_or_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))           \
  X(void, hsa_signal_or_scacquire, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))         \
  X(void, hsa_signal_or_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))         \
  X(void, hsa_signal_or_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))       \
  X(void, hsa_signal_xor_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))          \
  X(void, hsa_signal_xor_scacquire, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_xor_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_xor_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))      \
  X(hsa_signal_value_t, hsa_signal_exchange_relaxed, (hsa_signal_t signal, hsa_signal_value_t value),        \
    (signal, value))                                                                                         \
  X(hsa_signal_value_t, hsa_signal_exchange_scacquire, (hsa_signal_t signal, hsa_signal_value_t value),      \
    (signal, value))                                                                                         \
  X(hsa_signal_value_t, hsa_signal_exchange_screlease, (hsa_signal_t signal, hsa_signal_value_t value),      \
    (signal, value))                                                                                         \
  X(hsa_signal_value_t, hsa_signal_exchange_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value),    \
    (signal, value))                                                                                         \
  X(void, hsa_signal_add_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))          \
  X(void, hsa_signal_add_scacquire, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_add_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))        \
  X(void, hsa_signal_add_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))      \
  X(void, hsa_signal_subtract_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))     \
  X(void, hsa_signal_subtract_scacquire, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))   \
  X(void, hsa_signal_subtract_screlease, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value))   \
  X(void, hsa_signal_subtract_scacq_screl, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value)) \
  X(hsa_signal_value_t, hsa_signal_cas_relaxed,                                                              \
    (hsa_signal_t signal, hsa_signal_value_t expected, hsa_signal_value_t value), (signal, expected, value)) \
  X(hsa_signal_value_t, hsa_signal_cas_scacquire,                                                            \
    (hsa_signal_t signal, hsa_signal_value_t expected, hsa_signal_value_t value), (signal, expected, value)) \
  X(hsa_signal_value_t, hsa_signal_cas_screlease,                                                            \
    (hsa_signal_t signal, hsa_signal_value_t expected, hsa_signal_value_t value), (signal, expected, value)) \
  X(hsa_signal_value_t, hsa_signal_cas_scacq_screl,                                                          \
    (hsa_signal_t signal, hsa_signal_value_t expected, hsa_signal_value_t value), (signal, expected, value))

#define KERNCAP_HSA_CORE_CODE(X)                                                                             \
  X(hsa_status_t, hsa_isa_from_name, (const char* name, hsa_isa_t* isa), (name, isa))                        \
  X(hsa_status_t, hsa_isa_get_info,                                                                          \
    (hsa_isa_t isa, hsa_isa_info_t attribute, std::uint32_t index, void* value),                             \
    (isa, attribute, index, value))                                                                          \
  X(hsa_status_t, hsa_isa_compatible, (hsa_isa_t code_object_isa, hsa_isa_t agent_isa, bool* result),        \
    (code_object_isa, agent_isa, result))                                                                    \
  X(hsa_status_t, hsa_code_object_serialize,                                                                 \
    (hsa_code_object_t code_object, hsa_status_t(*alloc_callback)(std::size_t, hsa_callback_data_t, void**), \
     hsa_callback_data_t callback_data, const char* options, void** serialized_code_object,                  \
     std::size_t* serialized_code_object_size),                                                              \
    (code_object, alloc_callback, callback_data, options, serialized_code_object,                            \
     serialized_code_object_size))                                                                           \
  X(hsa_status_t, hsa_code_object_deserialize,                                                               \
    (void* serialized_code_object, std::size_t serialized_code_object_size, const char* options,             \
     hsa_code_object_t* code_object),                                                                        \
    (serialized_code_object, serialized_code_object_size, options, code_object))                             \
  X(hsa_status_t, hsa_code_object_destroy, (hsa_code_object_t code_object), (code_object))                   \
  X(hsa_status_t, hsa_code_object_get_info,                                                                  \
    (hsa_code_object_t code_object, hsa_code_object_info_t attribute, void* value),                          \
    (code_object, attribute, value))                                                                         \
  X(hsa_status_t, hsa_code_object_get_symbol,                                                                \
    (hsa_code_object_t code_object, const char* symbol_name, hsa_code_symbol_t* symbol),                     \
    (code_object, symbol_name, symbol))                                                                      \
  X(hsa_status_t, hsa_code_symbol_get_info,                                                                  \
    (hsa_code_symbol_t code_symbol, hsa_code_symbol_info_t attribute, void* value),                          \
    (code_symbol, attribute, value))                                                                         \
  X(hsa_status_t, hsa_code_object_iterate_symbols,                                                           \
    (hsa_code_object_t code_object, hsa_status_t(*callback)(hsa_code_object_t, hsa_code_symbol_t, void*),    \
     void* data),                                                                                            \
    (code_object, callback, data))                                                                           \
  X(hsa_status_t, hsa_executable_create,                                                                     \
    (hsa_profile_t profile, hsa_executable_state_t executable_state, const char* options,                    \
     hsa_executable_t* executable),                                                                          \
    (profile, executable_state, options, executable))                                                        \
  X(hsa_status_t, hsa_executable_destroy, (hsa_executable_t executable), (executable))                       \
  X(hsa_status_t, hsa_executable_load_code_object,                                                           \
    (hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_t code_object, const char* options),    \
    (executable, agent, code_object, options))                                                               \
  X(hsa_status_t, hsa_executable_freeze, (hsa_executable_t executable, const char* options),                 \
    (executable, options))                                                                                   \
  X(hsa_status_t, hsa_executable_get_info,                                                                   \
    (hsa_executable_t executable, hsa_executable_info_t attribute, void* value),                             \
    (executable, attribute, value))                                                                          \
  X(hsa_status_t, hsa_executable_global_variable_define,                                                     \
    (hsa_executable_t executable, const char* variable_name, void* address),                                 \
    (executable, variable_name, address))                                                                    \
  X(hsa_status_t, hsa_executable_agent_global_variable_define,                                               \
    (hsa_executable_t executable, hsa_agent_t agent, const char* variable_name, void* address),              \
    (executable, agent, variable_name, address))                                                             \
  X(hsa_status_t, hsa_executable_readonly_variable_define,                                                   \
    (hsa_executable_t executable, hsa_agent_t agent, const char* variable_name, void* address),              \
    (executable, agent, variable_name, address))                                                             \
  X(hsa_status_t, hsa_executable_validate, (hsa_executable_t executable, std::uint32_t* result),             \
    (executable, result))                                                                                    \
  X(hsa_status_t, hsa_executable_get_symbol,                                                                 \
    (hsa_executable_t executable, const char* module_name, const char* symbol_name, hsa_agent_t agent,       \
     std::int32_t call_convention, hsa_executable_symbol_t* symbol),                                         \
    (executable, module_name, symbol_name, agent, call_convention, symbol))                                  \
  X(hsa_status_t, hsa_executable_symbol_get_info,                                                            \
    (hsa_executable_symbol_t executable_symbol, hsa_executable_symbol_info_t attribute, void* value),        \
    (executable_symbol, attribute, value))                                                                   \
  X(hsa_status_t, hsa_executable_iterate_symbols,                                                            \
    (hsa_executable_t executable, hsa_status_t(*callback)(hsa_executable_t, hsa_executable_symbol_t, void*), \
     void* data),                                                                                            \
    (executable, callback, data))                                                                            \
  X(hsa_status_t, hsa_status_string, (hsa_status_t status, const char** status_string),                      \
    (status, status_string))                                                                                 \
  X(hsa_status_t, hsa_extension_get_name, (std::uint16_t extension, const char** name), (extension, name))   \
  X(hsa_status_t, hsa_system_major_extension_supported,                                                      \
    (std::uint16_t extension, std::uint16_t version_major, std::uint16_t* version_minor, bool* result),      \
    (extension, version_major, version_minor, result))                                                       \
  X(hsa_status_t, hsa_system_get_major_extension_table,                                                      \
    (std::uint16_t extension, std::uint16_t version_major, std::size_t table_length, void* table),           \
    (extension, version_major, table_length, table))                                                         \
  X(hsa_status_t, hsa_agent_major_extension_supported,                                                       \
    (std::uint16_t extension, hsa_agent_t agent, std::uint16_t version_major, std::uint16_t* version_minor,  \
     bool* result),                                                                                          \
    (extension, agent, version_major, version_minor, result))                                                \
  X(hsa_status_t, hsa_cache_get_info, (hsa_cache_t cache, hsa_cache_info_t attribute, void* value),          \
    (cache, attribute, value))                                                                               \
  X(hsa_status_t, hsa_agent_iterate_caches,                                                                  \
    (hsa_agent_t agent, hsa_status_t(*callback)(hsa_cache_t, void*), void* data), (agent, callback, data))   \
  X(void, hsa_signal_silent_store_relaxed, (hsa_signal_t signal, hsa_signal_value_t value), (signal, value)) \
  X(void, hsa_signal_silent_store_screlease, (hsa_signal_t signal, hsa_signal_value_t value),                \
    (signal, value))                                                                                         \
  X(hsa_status_t, hsa_signal_group_create,                                                                   \
    (std::uint32_t num_signals, const hsa_signal_t* signals, std::uint32_t num_consumers,                    \
     const hsa_agent_t* consumers, hsa_signal_group_t* signal_group),                                        \
    (num_signals, signals, num_consumers, consumers, signal_group))                                          \
  X(hsa_status_t, hsa_signal_group_destroy, (hsa_signal_group_t signal_group), (signal_group))               \
  X(hsa_status_t, hsa_signal_group_wait_any_scacquire,                                                       \
    (hsa_signal_group_t signal_group, const hsa_signal_condition_t* conditions,                              \
     const hsa_signal_value_t* compare_values, hsa_wait_state_t wait_state_hint, hsa_signal_t* signal,       \
     hsa_signal_value_t* value),                                                                             \
    (signal_group, conditions, compare_values, wait_state_hint, signal, value))                              \
  X(hsa_status_t, hsa_signal_group_wait_any_relaxed,                                                         \
    (hsa_signal_group_t signal_group, const hsa_signal_condition_t* conditions,                              \
     const hsa_signal_value_t* compare_values, hsa_wait_state_t wait_state_hint, hsa_signal_t* signal,       \
     hsa_signal_value_t* value),                                                                             \
    (signal_group, conditions, compare_values, wait_state_hint, signal, value))                              \
  X(hsa_status_t, hsa_agent_iterate_isas,                                                                    \
    (hsa_agent_t agent, hsa_status_t(*callback)(hsa_isa_t, void*), void* data), (agent, callback, data))     \
  X(hsa_status_t, hsa_isa_get_info_alt, (hsa_isa_t isa, hsa_isa_info_t attribute, void* value),              \
    (isa, attribute, value))                                                                                 \
  X(hsa_status_t, hsa_isa_get_exception_policies,                                                            \
    (hsa_isa_t isa, hsa_profile_t profile, std::uint16_t* mask), (isa, profile, mask))                       \
  X(hsa_status_t, hsa_isa_get_round_method,                                                                  \
    (hsa_isa_t isa, hsa_fp_type_t fp_type, hsa_flush_mode_t flush_mode, hsa_round_method_t * round_method),  \
    (isa, fp_type, flush_mode, round_method))                                                                \
  X(hsa_status_t, hsa_wavefront_get_info,                                                                    \
    (hsa_wavefront_t wavefront, hsa_wavefront_info_t attribute, void* value), (wavefront, attribute, value)) \
  X(hsa_status_t, hsa_isa_iterate_wavefronts,                                                                \
    (hsa_isa_t isa, hsa_status_t(*callback)(hsa_wavefront_t, void*), void* data), (isa, callback, data))     \
  X(hsa_status_t, hsa_code_object_get_symbol_from_name,                                                      \
    (hsa_code_object_t code_object, const char* module_name, const char* symbol_name,                        \
     hsa_code_symbol_t* symbol),                                                                             \
    (code_object, module_name, symbol_name, symbol))                                                         \
  X(hsa_status_t, hsa_code_object_reader_create_from_file,                                                   \
    (hsa_file_t file, hsa_code_object_reader_t * code_object_reader), (file, code_object_reader))            \
  X(hsa_status_t, hsa_code_object_reader_create_from_memory,                                                 \
    (const void* code_object, std::size_t size, hsa_code_object_reader_t* code_object_reader),               \
    (code_object, size, code_object_reader))                                                                 \
  X(hsa_status_t, hsa_code_object_reader_destroy, (hsa_code_object_reader_t code_object_reader),             \
    (code_object_reader))                                                                                    \
  X(hsa_status_t, hsa_executable_create_alt,                                                                 \
    (hsa_profile_t profile, hsa_default_float_rounding_mode_t default_float_rounding_mode,                   \
     const char* options, hsa_executable_t* executable),                                                     \
    (profile, default_float_rounding_mode, options, executable))                                             \
  X(hsa_status_t, hsa_executable_load_program_code_object,                                                   \
    (hsa_executable_t executable, hsa_code_object_reader_t code_object_reader, const char* options,          \
     hsa_loaded_code_object_t* loaded_code_object),                                                          \
    (executable, code_object_reader, options, loaded_code_object))                                           \
  X(hsa_status_t, hsa_executable_load_agent_code_object,                                                     \
    (hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_reader_t code_object_reader,            \
     const char* options, hsa_loaded_code_object_t* loaded_code_object),                                     \
    (executable, agent, code_object_reader, options, loaded_code_object))                                    \
  X(hsa_status_t, hsa_executable_validate_alt,                                                               \
    (hsa_executable_t executable, const char* options, std::uint32_t* result),                               \
    (executable, options, result))                                                                           \
  X(hsa_status_t, hsa_executable_get_symbol_by_name,                                                         \
    (hsa_executable_t executable, const char* symbol_name, const hsa_agent_t* agent,                         \
     hsa_executable_symbol_t* symbol),                                                                       \
    (executable, symbol_name, agent, symbol))                                                                \
  X(hsa_status_t, hsa_executable_iterate_agent_symbols,                                                      \
    (hsa_executable_t executable, hsa_agent_t agent,                                                         \
     hsa_status_t(*callback)(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t, void*), void* data),    \
    (executable, agent, callback, data))                                                                     \
  X(hsa_status_t, hsa_executable_iterate_program_symbols,                                                    \
    (hsa_executable_t executable, hsa_status_t(*callback)(hsa_executable_t, hsa_executable_symbol_t, void*), \
     void* data),                                                                                            \
    (executable, callback, data))

#define KERNCAP_HSA_CORE_FUNCTIONS(X)  \
  KERNCAP_HSA_CORE_QUEUE_AND_MEMORY(X) \
  KERNCAP_HSA_CORE_SIGNAL(X)           \
  KERNCAP_HSA_CORE_CODE(X)

// The exported C functions. Each goes through the live table, so that a tool that replaced an entry sees the
// call whoever makes it. Deprecated names of HSA 1.0 share the entry of the name that replaced them.
#include "sim/hsa/api_tables.h"

#define KERNCAP_EXPORT __attribute__((visibility("default")))

namespace kerncap::abi {

using sim::rt::api_tables;

extern "C" {

#define KERNCAP_SIM_EXPORT_CORE(ret, name, params, args) \
  KERNCAP_EXPORT ret name params { return api_tables().core.name##_fn args; }
#define KERNCAP_SIM_EXPORT_AMD(ret, name, params, args) \
  KERNCAP_EXPORT ret name params { return api_tables().amd_ext.name##_fn args; }
#define KERNCAP_SIM_EXPORT_IMAGE(ret, name, params, args) \
  KERNCAP_EXPORT ret name params { return api_tables().image_ext.name##_fn args; }

KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_SIM_EXPORT_CORE)
// Three of these (the intercept functions) are kept from the dynamic symbol table by exports.map, as in ROCr.
KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_SIM_EXPORT_AMD)
KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_SIM_EXPORT_IMAGE)

#define KERNCAP_SIM_QUEUE_LOAD(old_name, name)                      \
  KERNCAP_EXPORT std::uint64_t old_name(const hsa_queue_t* queue) { \
    return api_tables().core.name##_fn(queue);                      \
  }
#define KERNCAP_SIM_QUEUE_STORE(old_name, name)                                 \
  KERNCAP_EXPORT void old_name(const hsa_queue_t* queue, std::uint64_t value) { \
    api_tables().core.name##_fn(queue, value);                                  \
  }
#define KERNCAP_SIM_QUEUE_ADD(old_name, name)                                            \
  KERNCAP_EXPORT std::uint64_t old_name(const hsa_queue_t* queue, std::uint64_t value) { \
    return api_tables().core.name##_fn(queue, value);                                    \
  }
#define KERNCAP_SIM_QUEUE_CAS(old_name, name)                                             \
  KERNCAP_EXPORT std::uint64_t old_name(const hsa_queue_t* queue, std::uint64_t expected, \
                                        std::uint64_t value) {                            \
    return api_tables().core.name##_fn(queue, expected, value);                           \
  }
KERNCAP_SIM_QUEUE_LOAD(hsa_queue_load_read_index_acquire, hsa_queue_load_read_index_scacquire)
KERNCAP_SIM_QUEUE_LOAD(hsa_queue_load_write_index_acquire, hsa_queue_load_write_index_scacquire)
KERNCAP_SIM_QUEUE_STORE(hsa_queue_store_write_index_release, hsa_queue_store_write_index_screlease)
KERNCAP_SIM_QUEUE_STORE(hsa_queue_store_read_index_release, hsa_queue_store_read_index_screlease)
KERNCAP_SIM_QUEUE_ADD(hsa_queue_add_write_index_acq_rel, hsa_queue_add_write_index_scacq_screl)
KERNCAP_SIM_QUEUE_ADD(hsa_queue_add_write_index_acquire, hsa_queue_add_write_index_scacquire)
KERNCAP_SIM_QUEUE_ADD(hsa_queue_add_write_index_release, hsa_queue_add_write_index_screlease)
KERNCAP_SIM_QUEUE_CAS(hsa_queue_cas_write_index_acq_rel, hsa_queue_cas_write_index_scacq_screl)
KERNCAP_SIM_QUEUE_CAS(hsa_queue_cas_write_index_acquire, hsa_queue_cas_write_index_scacquire)
KERNCAP_SIM_QUEUE_CAS(hsa_queue_cas_write_index_release, hsa_queue_cas_write_index_screlease)

#define KERNCAP_SIM_SIGNAL_VOID(op, old_order, order)                                                \
  KERNCAP_EXPORT void hsa_signal_##op##_##old_order(hsa_signal_t signal, hsa_signal_value_t value) { \
    api_tables().core.hsa_signal_##op##_##order##_fn(signal, value);                                 \
  }
#define KERNCAP_SIM_SIGNAL_ALL(op)                  \
  KERNCAP_SIM_SIGNAL_VOID(op, acq_rel, scacq_screl) \
  KERNCAP_SIM_SIGNAL_VOID(op, acquire, scacquire)   \
  KERNCAP_SIM_SIGNAL_VOID(op, release, screlease)
KERNCAP_SIM_SIGNAL_ALL(add)
KERNCAP_SIM_SIGNAL_ALL(subtract)
KERNCAP_SIM_SIGNAL_ALL(and)
KERNCAP_SIM_SIGNAL_ALL(or)
KERNCAP_SIM_SIGNAL_ALL(xor)
KERNCAP_SIM_SIGNAL_VOID(store, release, screlease)

#define KERNCAP_SIM_SIGNAL_EXCHANGE(old_order, order)                                           \
  KERNCAP_EXPORT hsa_signal_value_t hsa_signal_exchange_##old_order(hsa_signal_t signal,        \
                                                                    hsa_signal_value_t value) { \
    return api_tables().core.hsa_signal_exchange_##order##_fn(signal, value);                   \
  }                                                                                             \
  KERNCAP_EXPORT hsa_signal_value_t hsa_signal_cas_##old_order(                                 \
      hsa_signal_t signal, hsa_signal_value_t expected, hsa_signal_value_t value) {             \
    return api_tables().core.hsa_signal_cas_##order##_fn(signal, expected, value);              \
  }
KERNCAP_SIM_SIGNAL_EXCHANGE(acq_rel, scacq_screl)
KERNCAP_SIM_SIGNAL_EXCHANGE(acquire, scacquire)
KERNCAP_SIM_SIGNAL_EXCHANGE(release, screlease)

KERNCAP_EXPORT hsa_signal_value_t hsa_signal_load_acquire(hsa_signal_t signal) {
  return api_tables().core.hsa_signal_load_scacquire_fn(signal);
}

KERNCAP_EXPORT hsa_signal_value_t hsa_signal_wait_acquire(hsa_signal_t signal,
                                                          hsa_signal_condition_t condition,
                                                          hsa_signal_value_t compare_value,
                                                          std::uint64_t timeout_hint,
                                                          hsa_wait_state_t wait_state_hint) {
  return api_tables().core.hsa_signal_wait_scacquire_fn(signal, condition, compare_value, timeout_hint,
                                                        wait_state_hint);
}

// Images are not simulated: a limit of zero says so.
KERNCAP_EXPORT hsa_status_t hsa_amd_image_get_info_max_dim(hsa_agent_t agent, hsa_agent_info_t attribute,
                                                           void* value) {
  return api_tables().core.hsa_agent_get_info_fn(agent, attribute, value);
}

// HSAIL's finalizer and PC sampling: the names exist in ROCr, the features do not exist here.
#define KERNCAP_SIM_ABSENT(name) \
  KERNCAP_EXPORT hsa_status_t name() { return HSA_STATUS_ERROR_NOT_INITIALIZED; }
KERNCAP_SIM_ABSENT(hsa_ext_program_create)
KERNCAP_SIM_ABSENT(hsa_ext_program_destroy)
KERNCAP_SIM_ABSENT(hsa_ext_program_add_module)
KERNCAP_SIM_ABSENT(hsa_ext_program_iterate_modules)
KERNCAP_SIM_ABSENT(hsa_ext_program_get_info)
KERNCAP_SIM_ABSENT(hsa_ext_program_finalize)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_iterate_configuration)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_create)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_create_from_id)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_destroy)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_start)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_stop)
KERNCAP_SIM_ABSENT(hsa_ven_amd_pcs_flush)

}  // extern "C"

}  // namespace kerncap::abi

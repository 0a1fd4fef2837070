#include "replay/runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "replay/error.h"

namespace kerncap::replay {
namespace {

using abi::hsa_agent_t;
using abi::HSA_STATUS_INFO_BREAK;
using abi::HSA_STATUS_SUCCESS;
using abi::hsa_status_t;

template <typename Callback>
auto trampoline_of(Callback&) {
  return [](auto item, void* data) -> hsa_status_t {
    (*static_cast<Callback*>(data))(item);
    return HSA_STATUS_SUCCESS;
  };
}

std::string library_path(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return map->l_name;
}

}  // namespace

Runtime::Runtime(const std::string& wanted) {
  library_ = dlopen(wanted.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library_ == nullptr) {
    const char* const why = dlerror();
    throw ReplayError(ErrorClass::device, "cannot load the HSA runtime " + wanted + ": " +
                                              (why != nullptr ? why : "unknown reason") +
                                              ". On a machine without ROCm choose a simulated device "
                                              "(--device sim:gfx942)");
  }
  path = library_path(library_);
#define KERNCAP_REPLAY_FIND_CORE(ret, name, params, args) \
  core.name##_fn = reinterpret_cast<decltype(core.name##_fn)>(dlsym(library_, #name));
#define KERNCAP_REPLAY_FIND_AMD(ret, name, params, args) \
  amd.name##_fn = reinterpret_cast<decltype(amd.name##_fn)>(dlsym(library_, #name));
  KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_REPLAY_FIND_CORE)
  KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_REPLAY_FIND_AMD)
#undef KERNCAP_REPLAY_FIND_CORE
#undef KERNCAP_REPLAY_FIND_AMD
  sim = SimApi(library_);
  if (core.hsa_init_fn == nullptr || core.hsa_iterate_agents_fn == nullptr ||
      core.hsa_queue_create_fn == nullptr || amd.hsa_amd_memory_pool_allocate_fn == nullptr) {
    throw ReplayError(ErrorClass::device, path + " is no HSA runtime: hsa_init and its kin are not in it");
  }
  check(core.hsa_init_fn(), "starting the HSA runtime " + path);
  initialised_ = true;

  auto collect = [this](hsa_agent_t handle) {
    abi::hsa_device_type_t type{};
    core.hsa_agent_get_info_fn(handle, abi::HSA_AGENT_INFO_DEVICE, &type);
    if (type == abi::HSA_DEVICE_TYPE_CPU && cpu.handle == 0) cpu = handle;
    if (type != abi::HSA_DEVICE_TYPE_GPU) return;
    Agent agent;
    agent.handle = handle;
    describe(agent);
    gpus_.push_back(agent);
  };
  check(core.hsa_iterate_agents_fn(trampoline_of(collect), &collect), "listing the agents");
  auto host_pools = [this](abi::hsa_amd_memory_pool_t pool) {
    abi::hsa_amd_segment_t segment{};
    bool allowed = false;
    amd.hsa_amd_memory_pool_get_info_fn(pool, abi::HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
    amd.hsa_amd_memory_pool_get_info_fn(pool, abi::HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed);
    if (segment == abi::HSA_AMD_SEGMENT_GLOBAL && allowed && host_pool.handle == 0) host_pool = pool;
  };
  if (cpu.handle != 0) {
    amd.hsa_amd_agent_iterate_memory_pools_fn(cpu, trampoline_of(host_pools), &host_pools);
  }
  std::uint64_t frequency = 0;
  core.hsa_system_get_info_fn(abi::HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency);
  if (frequency > 0) ns_per_tick = 1e9 / static_cast<double>(frequency);
  if (core.hsa_system_get_major_extension_table_fn != nullptr) {
    core.hsa_system_get_major_extension_table_fn(abi::HSA_EXTENSION_AMD_LOADER, 1, abi::kLoaderTable101Bytes,
                                                 &loader);
  }
}

Runtime::~Runtime() {
  if (initialised_) core.hsa_shut_down_fn();
}

void Runtime::describe(Agent& agent) {
  char name[64] = {};
  core.hsa_agent_get_info_fn(agent.handle, abi::HSA_AGENT_INFO_NAME, name);
  agent.name = name;
  char product[64] = {};
  core.hsa_agent_get_info_fn(agent.handle, abi::HSA_AMD_AGENT_INFO_PRODUCT_NAME, product);
  agent.product.assign(product, strnlen(product, sizeof(product)));
  core.hsa_agent_get_info_fn(agent.handle, abi::HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, &agent.max_workgroup);
  std::uint32_t caches[4] = {};
  core.hsa_agent_get_info_fn(agent.handle, abi::HSA_AGENT_INFO_CACHE_SIZE, caches);
  agent.cache_bytes = *std::max_element(std::begin(caches), std::end(caches));

  auto isas = [&](abi::hsa_isa_t isa) {
    if (!agent.isa.empty()) return;
    std::uint32_t length = 0;
    core.hsa_isa_get_info_alt_fn(isa, abi::HSA_ISA_INFO_NAME_LENGTH, &length);
    std::string text(length + 1, '\0');
    core.hsa_isa_get_info_alt_fn(isa, abi::HSA_ISA_INFO_NAME, text.data());
    agent.isa = text.c_str();
  };
  core.hsa_agent_iterate_isas_fn(agent.handle, trampoline_of(isas), &isas);

  auto pools = [&](abi::hsa_amd_memory_pool_t pool) {
    abi::hsa_amd_segment_t segment{};
    std::uint32_t flags = 0;
    amd.hsa_amd_memory_pool_get_info_fn(pool, abi::HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
    if (segment == abi::HSA_AMD_SEGMENT_GROUP) {
      std::size_t bytes = 0;
      amd.hsa_amd_memory_pool_get_info_fn(pool, abi::HSA_AMD_MEMORY_POOL_INFO_SIZE, &bytes);
      agent.lds_bytes = static_cast<std::uint32_t>(bytes);
    }
    if (segment != abi::HSA_AMD_SEGMENT_GLOBAL) return;
    amd.hsa_amd_memory_pool_get_info_fn(pool, abi::HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
    if ((flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0) {
      agent.coarse = pool;
    } else if ((flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0) {
      agent.fine = pool;
    }
  };
  amd.hsa_amd_agent_iterate_memory_pools_fn(agent.handle, trampoline_of(pools), &pools);
}

bool Runtime::has_vmem() const {
  bool supported = false;
  if (amd.hsa_amd_vmem_address_reserve_fn == nullptr || amd.hsa_amd_vmem_map_fn == nullptr) return false;
  return core.hsa_system_get_info_fn(abi::HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, &supported) ==
             HSA_STATUS_SUCCESS &&
         supported;
}

std::uint64_t Runtime::allocate_on_device(const Agent& agent, std::uint64_t bytes) const {
  void* buffer = nullptr;
  if (agent.coarse.handle == 0 ||
      amd.hsa_amd_memory_pool_allocate_fn(agent.coarse, bytes, 0, &buffer) != HSA_STATUS_SUCCESS) {
    return 0;
  }
  return reinterpret_cast<std::uint64_t>(buffer);
}

void Runtime::free_on_device(std::uint64_t address) const {
  amd.hsa_amd_memory_pool_free_fn(reinterpret_cast<void*>(address));
}

void Runtime::copy_on_device(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const {
  check(core.hsa_memory_copy_fn(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes),
        "copying on the device");
}

void* Runtime::kernarg_memory(const Agent& agent, std::uint64_t bytes) const {
  void* memory = nullptr;
  check(amd.hsa_amd_memory_pool_allocate_fn(host_pool, bytes, 0, &memory), "allocating kernel arguments");
  check(amd.hsa_amd_agents_allow_access_fn(1, &agent.handle, nullptr, memory),
        "giving access to kernel arguments");
  return memory;
}

std::string Runtime::status_text(hsa_status_t status) const {
  const char* text = nullptr;
  if (core.hsa_status_string_fn != nullptr) core.hsa_status_string_fn(status, &text);
  return text != nullptr ? text : "HSA status " + hex(status);
}

void Runtime::check(hsa_status_t status, const std::string& doing) const {
  if (status == HSA_STATUS_SUCCESS || status == HSA_STATUS_INFO_BREAK) return;
  throw ReplayError(ErrorClass::device, doing + " failed: " + status_text(status));
}

}  // namespace kerncap::replay

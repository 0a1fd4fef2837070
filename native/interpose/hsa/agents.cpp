#include "interpose/hsa/agents.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "interpose/hsa/api.h"

namespace kerncap::interpose {
namespace {

using namespace abi;  // NOLINT: the ABI's own names

std::string text_of(const char* s, std::size_t limit) { return std::string(s, ::strnlen(s, limit)); }

template <typename T>
T agent_value(hsa_agent_t agent, hsa_agent_info_t attribute, T otherwise) {
  T value = otherwise;
  return api().core.hsa_agent_get_info_fn(agent, attribute, &value) == HSA_STATUS_SUCCESS ? value : otherwise;
}

std::string isa_name(hsa_agent_t agent) {
  hsa_isa_t isa{};
  const auto first = [](hsa_isa_t found, void* out) {
    *static_cast<hsa_isa_t*>(out) = found;
    return HSA_STATUS_INFO_BREAK;
  };
  if (api().core.hsa_agent_iterate_isas_fn == nullptr) return {};
  api().core.hsa_agent_iterate_isas_fn(agent, first, &isa);
  std::uint32_t length = 0;
  if (isa.handle == 0 ||
      api().core.hsa_isa_get_info_alt_fn(isa, HSA_ISA_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS) {
    return {};
  }
  std::string name(length + 1, '\0');
  if (api().core.hsa_isa_get_info_alt_fn(isa, HSA_ISA_INFO_NAME, name.data()) != HSA_STATUS_SUCCESS)
    return {};
  return text_of(name.c_str(), length);
}

std::uint32_t group_segment_bytes(hsa_agent_t agent) {
  std::uint32_t bytes = 0;
  const auto look = [](hsa_amd_memory_pool_t pool, void* out) {
    hsa_amd_segment_t segment{};
    std::size_t size = 0;
    if (api().amd.hsa_amd_memory_pool_get_info_fn(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment) ==
            HSA_STATUS_SUCCESS &&
        segment == HSA_AMD_SEGMENT_GROUP &&
        api().amd.hsa_amd_memory_pool_get_info_fn(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size) ==
            HSA_STATUS_SUCCESS) {
      *static_cast<std::uint32_t*>(out) = static_cast<std::uint32_t>(size);
    }
    return HSA_STATUS_SUCCESS;
  };
  if (api().amd.hsa_amd_agent_iterate_memory_pools_fn != nullptr) {
    api().amd.hsa_amd_agent_iterate_memory_pools_fn(agent, look, &bytes);
  }
  return bytes;
}

hsa_amd_memory_pool_t fine_pool(hsa_agent_t agent) {
  hsa_amd_memory_pool_t found{};
  const auto look = [](hsa_amd_memory_pool_t pool, void* out) {
    hsa_amd_segment_t segment{};
    std::uint32_t flags = 0;
    auto& get = api().amd.hsa_amd_memory_pool_get_info_fn;
    if (get(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment) != HSA_STATUS_SUCCESS ||
        segment != HSA_AMD_SEGMENT_GLOBAL ||
        get(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags) != HSA_STATUS_SUCCESS ||
        (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) == 0) {
      return HSA_STATUS_SUCCESS;
    }
    *static_cast<hsa_amd_memory_pool_t*>(out) = pool;
    return HSA_STATUS_INFO_BREAK;
  };
  if (api().amd.hsa_amd_agent_iterate_memory_pools_fn != nullptr) {
    api().amd.hsa_amd_agent_iterate_memory_pools_fn(agent, look, &found);
  }
  return found;
}

AgentInfo describe(hsa_agent_t agent, std::uint32_t gpu_index) {
  AgentInfo info;
  info.handle = agent;
  info.gpu = agent_value(agent, HSA_AGENT_INFO_DEVICE, HSA_DEVICE_TYPE_CPU) == HSA_DEVICE_TYPE_GPU;
  char text[64] = {};
  if (api().core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_NAME, text) == HSA_STATUS_SUCCESS) {
    info.name = text_of(text, sizeof text);
  }
  std::memset(text, 0, sizeof text);
  if (api().core.hsa_agent_get_info_fn(agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME, text) == HSA_STATUS_SUCCESS) {
    info.product = text_of(text, sizeof text);
  }
  if (!info.gpu) {
    info.host_pool = fine_pool(agent);
    return info;
  }
  info.index = gpu_index;
  info.isa = isa_name(agent);
  info.compute_units = agent_value<std::uint32_t>(agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, 0);
  info.wavefront = agent_value<std::uint32_t>(agent, HSA_AGENT_INFO_WAVEFRONT_SIZE, 64);
  info.lds_bytes = group_segment_bytes(agent);
  std::uint32_t caches[4] = {};
  if (api().core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_CACHE_SIZE, caches) == HSA_STATUS_SUCCESS) {
    for (const std::uint32_t cache : caches) {
      if (cache != 0) info.cache_bytes = cache;
    }
  }
  return info;
}

}  // namespace

void Agents::load() {
  agents_.clear();
  const auto add = [](hsa_agent_t agent, void* out) {
    auto& agents = *static_cast<std::vector<AgentInfo>*>(out);
    const auto gpus = std::count_if(agents.begin(), agents.end(), [](const AgentInfo& a) { return a.gpu; });
    agents.push_back(describe(agent, static_cast<std::uint32_t>(gpus)));
    return HSA_STATUS_SUCCESS;
  };
  api().core.hsa_iterate_agents_fn(add, &agents_);
}

const AgentInfo* Agents::find(hsa_agent_t handle) const {
  for (const AgentInfo& agent : agents_) {
    if (agent.handle.handle == handle.handle) return &agent;
  }
  return nullptr;
}

std::string Agents::devices_text() const {
  std::string text;
  for (const AgentInfo& agent : agents_) {
    if (!agent.gpu) continue;
    text += std::to_string(agent.index) + '\t' + agent.name + '\t' + agent.isa + '\t' + agent.product + '\n';
  }
  return text;
}

hsa_amd_memory_pool_t Agents::host_pool() const {
  for (const AgentInfo& agent : agents_) {
    if (!agent.gpu && agent.host_pool.handle != 0) return agent.host_pool;
  }
  return {};
}

RuntimeInfo runtime_info() {
  RuntimeInfo info;
  std::uint16_t major = 0, minor = 0;
  const auto get_info = api().core.hsa_system_get_info_fn;
  if (get_info == nullptr) {  // tables that cannot be used: nothing of them is called
    info.text = "a runtime that is not known";
    return info;
  }
  get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
  Dl_info where{};
  const auto address = reinterpret_cast<void*>(api().core.hsa_init_fn);
  const bool found = ::dladdr(address, &where) != 0 && where.dli_fname != nullptr;
  info.text = std::string(found ? where.dli_fname : "libhsa-runtime64.so") + ' ' + std::to_string(major) +
              '.' + std::to_string(minor);
  const char* build = nullptr;
  if (get_info(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &build) == HSA_STATUS_SUCCESS && build != nullptr) {
    info.text += std::string(" (") + build + ')';
  }
  // The simulated runtime exports functions of its own, all under this prefix.
  void* library = found ? ::dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (library != nullptr) {
    info.simulated = ::dlsym(library, "kerncap_sim_last_fault") != nullptr;
    ::dlclose(library);
  }
  return info;
}

}  // namespace kerncap::interpose

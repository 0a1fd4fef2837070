// What the test programs of this folder share: checks, agents, memory, code, dispatches.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "abi/hsa_functions.h"
#include "abi/hsa_layouts.h"

using namespace kerncap::abi;  // NOLINT

[[noreturn]] inline void die(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::exit(1);
}
#define CHECK(...)                                                               \
  do {                                                                           \
    if (!(__VA_ARGS__)) die(__FILE__, __LINE__, "does not hold: " #__VA_ARGS__); \
  } while (false)
#define CHECK_EQ(a, b)                                                                               \
  do {                                                                                               \
    if (auto a_ = (a); !(a_ == static_cast<decltype(a_)>(b)))                                        \
      die(__FILE__, __LINE__, #a " is " + std::to_string(static_cast<long long>(a_)) + ", not " #b); \
  } while (false)
#define FAILS(status, call)                                                             \
  do {                                                                                  \
    if (hsa_status_t s_ = (call); s_ != (status))                                       \
      die(__FILE__, __LINE__, #call " gives " + std::to_string(s_) + ", not " #status); \
  } while (false)
#define OK(call) FAILS(HSA_STATUS_SUCCESS, call)

constexpr std::uint64_t kSecond = 1'000'000'000;

struct Machine {
  std::vector<hsa_agent_t> cpus, gpus;
  hsa_agent_t gpu{};
  hsa_amd_memory_pool_t host_fine{}, kernarg{}, device{};
};

inline hsa_amd_memory_pool_t find_pool(hsa_agent_t agent, std::uint32_t flags) {
  struct Search {
    std::uint32_t flags;
    hsa_amd_memory_pool_t found{0};
  } search{flags};
  hsa_amd_agent_iterate_memory_pools(
      agent,
      [](hsa_amd_memory_pool_t pool, void* data) {
        auto* s = static_cast<Search*>(data);
        hsa_amd_segment_t segment;
        std::uint32_t has = 0;
        OK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
        if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
        OK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &has));
        if (has == s->flags) s->found = pool;
        return HSA_STATUS_SUCCESS;
      },
      &search);
  CHECK(search.found.handle != 0);
  return search.found;
}

inline Machine open_machine() {
  OK(hsa_init());
  Machine m;
  OK(hsa_iterate_agents(
      [](hsa_agent_t agent, void* data) {
        hsa_device_type_t type;
        OK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
        auto* machine = static_cast<Machine*>(data);
        (type == HSA_DEVICE_TYPE_GPU ? machine->gpus : machine->cpus).push_back(agent);
        return HSA_STATUS_SUCCESS;
      },
      &m));
  CHECK(!m.gpus.empty() && !m.cpus.empty());
  m.gpu = m.gpus[0];
  m.host_fine = find_pool(m.cpus[0], HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED);
  m.kernarg = find_pool(
      m.cpus[0], HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
  m.device = find_pool(m.gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
  return m;
}

template <typename T = std::uint32_t>
T* allocate(hsa_amd_memory_pool_t pool, std::size_t count, const std::vector<hsa_agent_t>& access = {}) {
  void* memory = nullptr;
  OK(hsa_amd_memory_pool_allocate(pool, count * sizeof(T), 0, &memory));
  if (!access.empty())
    OK(hsa_amd_agents_allow_access(static_cast<std::uint32_t>(access.size()), access.data(), nullptr,
                                   memory));
  return static_cast<T*>(memory);
}

inline std::vector<char> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Module {
  hsa_executable_t executable{};
  hsa_agent_t agent{};
  std::vector<char> bytes;

  [[nodiscard]] hsa_executable_symbol_t symbol(const char* name) const {
    hsa_executable_symbol_t s;
    OK(hsa_executable_get_symbol_by_name(executable, name, &agent, &s));
    return s;
  }
  [[nodiscard]] std::uint64_t kernel(const std::string& name) const {
    std::uint64_t object = 0;
    OK(hsa_executable_symbol_get_info(symbol((name + ".kd").c_str()),
                                      HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    return object;
  }
};

inline Module load_module(hsa_agent_t agent, const std::string& path) {
  Module m;
  m.agent = agent;
  m.bytes = read_file(path);
  hsa_code_object_reader_t reader;
  OK(hsa_code_object_reader_create_from_memory(m.bytes.data(), m.bytes.size(), &reader));
  OK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                               &m.executable));
  OK(hsa_executable_load_agent_code_object(m.executable, agent, reader, nullptr, nullptr));
  OK(hsa_executable_freeze(m.executable, nullptr));
  OK(hsa_code_object_reader_destroy(reader));
  return m;
}

inline hsa_signal_t make_signal(std::int64_t value) {
  hsa_signal_t signal;
  OK(hsa_signal_create(value, 0, nullptr, &signal));
  return signal;
}

// Waits for 0, with a limit.
inline void wait_zero(hsa_signal_t signal, int line = 0) {
  if (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, 60 * kSecond, HSA_WAIT_STATE_BLOCKED) !=
      0)
    die(__FILE__, line, "a signal did not become 0 in 60 s");
}
#define WAIT_ZERO(signal) wait_zero(signal, __LINE__)

inline std::uint16_t header(hsa_packet_type_t type, bool barrier = true) {
  return static_cast<std::uint16_t>(type << HSA_PACKET_HEADER_TYPE |
                                    (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

// Writes a packet where the next free slot is (waiting for one), its header last; does not ring.
inline std::uint64_t write_packet(hsa_queue_t* queue, const void* packet) {
  const std::uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  const auto start = std::chrono::steady_clock::now();
  while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) {
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
    std::this_thread::yield();
  }
  char* slot = static_cast<char*>(queue->base_address) + (index & (queue->size - 1)) * 64;
  std::memcpy(slot + 2, static_cast<const char*>(packet) + 2, 62);
  std::uint16_t first;
  std::memcpy(&first, packet, 2);
  __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot), first, __ATOMIC_RELEASE);
  return index;
}

inline void ring(hsa_queue_t* queue, std::uint64_t index) {
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<std::int64_t>(index));
}

inline void submit(hsa_queue_t* queue, const void* packet) { ring(queue, write_packet(queue, packet)); }

struct Kernargs {
  char* next;
};

// A dispatch of one kernel over `items` work-items in workgroups of 64.
template <typename... Args>
hsa_kernel_dispatch_packet_t dispatch_packet(const Machine& m, std::uint64_t kernel, std::uint32_t items,
                                             hsa_signal_t completion, Args... args) {
  const auto& descriptor = *reinterpret_cast<const amd_kernel_descriptor_t*>(kernel);
  char* kernarg = allocate<char>(m.kernarg, 4096, m.gpus);
  std::size_t at = 0;
  auto put = [&](auto value) {
    at = (at + sizeof value - 1) / sizeof value * sizeof value;
    std::memcpy(kernarg + at, &value, sizeof value);
    at += sizeof value;
  };
  (put(args), ...);
  // Implicit arguments of code object v5: block counts, then group sizes.
  at = (at + 7) / 8 * 8;
  const std::uint32_t blocks[3] = {(items + 63) / 64, 1, 1};
  const std::uint16_t sizes[3] = {64, 1, 1};
  std::memcpy(kernarg + at, blocks, sizeof blocks);
  std::memcpy(kernarg + at + 12, sizes, sizeof sizes);
  hsa_kernel_dispatch_packet_t p{};
  p.header = header(HSA_PACKET_TYPE_KERNEL_DISPATCH);
  p.setup = 1;
  p.workgroup_size_x = 64;
  p.workgroup_size_y = p.workgroup_size_z = 1;
  p.grid_size_x = (items + 63) / 64 * 64;
  p.grid_size_y = p.grid_size_z = 1;
  p.private_segment_size = descriptor.private_segment_fixed_size;
  p.group_segment_size = descriptor.group_segment_fixed_size;
  p.kernel_object = kernel;
  p.kernarg_address = kernarg;
  p.completion_signal = completion;
  return p;
}

inline hsa_queue_t* make_queue(hsa_agent_t agent, std::uint32_t size = 64,
                               void (*callback)(hsa_status_t, hsa_queue_t*, void*) = nullptr,
                               void* data = nullptr) {
  hsa_queue_t* queue = nullptr;
  OK(hsa_queue_create(agent, size, HSA_QUEUE_TYPE_MULTI, callback, data, UINT32_MAX, UINT32_MAX, &queue));
  return queue;
}

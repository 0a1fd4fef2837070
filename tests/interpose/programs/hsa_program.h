// What the HSA programs share: agents, pools, a code object, a queue that packets are put into by hand.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi/hsa_functions.h"

using namespace kerncap::abi;  // NOLINT

#define CHECK(call)                                                                      \
  do {                                                                                   \
    const hsa_status_t status_ = (call);                                                 \
    if (status_ != HSA_STATUS_SUCCESS) {                                                 \
      std::fprintf(stderr, "%s:%d: %s gave 0x%x\n", __FILE__, __LINE__, #call, status_); \
      std::exit(2);                                                                      \
    }                                                                                    \
  } while (false)

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

union Packet {
  std::uint16_t header;
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier;
};

inline constexpr std::uint16_t kFences = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                         HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

struct Machine {
  hsa_agent_t gpu{}, cpu{};
  hsa_amd_memory_pool_t device{}, host{}, kernarg{};

  Machine() {
    CHECK(hsa_init());
    CHECK(hsa_iterate_agents(
        [](hsa_agent_t agent, void* data) {
          auto* m = static_cast<Machine*>(data);
          hsa_device_type_t type{};
          CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
          hsa_agent_t& slot = type == HSA_DEVICE_TYPE_GPU ? m->gpu : m->cpu;
          if (slot.handle == 0) slot = agent;
          return HSA_STATUS_SUCCESS;
        },
        this));
    find_pools(gpu);
    find_pools(cpu);
  }

  void find_pools(hsa_agent_t agent) {
    CHECK(hsa_amd_agent_iterate_memory_pools(
        agent,
        [](hsa_amd_memory_pool_t pool, void* data) {
          auto* m = static_cast<Machine*>(data);
          hsa_amd_segment_t segment{};
          std::uint32_t flags = 0;
          CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
          if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
          CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
          const bool coarse = (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0;
          if (m->device.handle == 0 && coarse) m->device = pool;
          if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0) m->kernarg = pool;
          const bool kernarg = (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0;
          const bool fine = (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0;
          if (fine && !kernarg) m->host = pool;
          return HSA_STATUS_SUCCESS;
        },
        this));
  }

  void* allocate(hsa_amd_memory_pool_t pool, std::size_t bytes) const {
    void* p = nullptr;
    CHECK(hsa_amd_memory_pool_allocate(pool, bytes, 0, &p));
    if (pool.handle != device.handle) CHECK(hsa_amd_agents_allow_access(1, &gpu, nullptr, p));
    return p;
  }

  int* device_ints(int count, int value) const {
    auto* p = static_cast<int*>(allocate(device, count * sizeof(int)));
    const std::vector<int> values(count, value);
    CHECK(hsa_memory_copy(p, values.data(), count * sizeof(int)));
    return p;
  }

  static int device_int(const int* p) {
    int value = 0;
    CHECK(hsa_memory_copy(&value, p, sizeof value));
    return value;
  }
};

struct Code {
  hsa_executable_t executable{};
  hsa_agent_t gpu{};

  // kernels.hsaco beside the program
  explicit Code(const Machine& machine) : gpu(machine.gpu) {
    char self[4096];
    const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self - 1);
    EXPECT(n > 0);
    self[n] = 0;
    const std::string path = std::string(self).substr(0, std::string(self).rfind('/')) + "/kernels.hsaco";
    const int fd = ::open(path.c_str(), O_RDONLY);
    EXPECT(fd >= 0);
    hsa_code_object_reader_t reader{};
    CHECK(hsa_code_object_reader_create_from_file(fd, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                                    &executable));
    CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, nullptr, nullptr));
    CHECK(hsa_executable_freeze(executable, nullptr));
    CHECK(hsa_code_object_reader_destroy(reader));
    ::close(fd);
  }

  std::uint64_t kernel(const char* name) const {
    hsa_executable_symbol_t symbol{};
    std::uint64_t object = 0;
    CHECK(hsa_executable_get_symbol_by_name(executable, (std::string(name) + ".kd").c_str(), &gpu, &symbol));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    return object;
  }
};

struct Queue {
  hsa_queue_t* queue = nullptr;
  std::uint64_t next = 0;  // for a single producer

  Queue(const Machine& machine, std::uint32_t size, hsa_queue_type_t type) {
    CHECK(hsa_queue_create(machine.gpu, size, type, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
  }

  // All packets with one ring of the doorbell.
  void submit(const std::vector<Packet>& packets) {
    const std::uint64_t first = hsa_queue_add_write_index_screlease(queue, packets.size());
    for (std::size_t i = 0; i < packets.size(); ++i) {
      while (first + i - hsa_queue_load_read_index_scacquire(queue) >= queue->size) ::usleep(20);
      auto* slot = static_cast<Packet*>(queue->base_address) + (first + i) % queue->size;
      std::memcpy(reinterpret_cast<char*>(slot) + 2, reinterpret_cast<const char*>(&packets[i]) + 2, 62);
      __atomic_store_n(&slot->header, packets[i].header, __ATOMIC_RELEASE);
    }
    hsa_signal_store_screlease(queue->doorbell_signal,
                               static_cast<hsa_signal_value_t>(first + packets.size() - 1));
  }
};

inline Packet dispatch(std::uint64_t kernel, void* kernargs, unsigned items, hsa_signal_t completion = {},
                       bool barrier = true) {
  Packet packet;
  std::memset(&packet, 0, sizeof packet);
  packet.dispatch.header = static_cast<std::uint16_t>(
      HSA_PACKET_TYPE_KERNEL_DISPATCH | (barrier ? 1 << HSA_PACKET_HEADER_BARRIER : 0) | kFences);
  packet.dispatch.setup = 1;
  packet.dispatch.workgroup_size_x = 64;
  packet.dispatch.workgroup_size_y = packet.dispatch.workgroup_size_z = 1;
  packet.dispatch.grid_size_x = items;
  packet.dispatch.grid_size_y = packet.dispatch.grid_size_z = 1;
  packet.dispatch.kernel_object = kernel;
  packet.dispatch.kernarg_address = kernargs;
  packet.dispatch.completion_signal = completion;
  return packet;
}

inline Packet barrier(hsa_signal_t dependency, hsa_signal_t completion = {}) {
  Packet packet;
  std::memset(&packet, 0, sizeof packet);
  packet.barrier.header = HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER | kFences;
  packet.barrier.dep_signal[0] = dependency;
  packet.barrier.completion_signal = completion;
  return packet;
}

inline hsa_signal_t new_signal(hsa_signal_value_t value = 1) {
  hsa_signal_t signal{};
  CHECK(hsa_signal_create(value, 0, nullptr, &signal));
  return signal;
}

// Ends the program with status 3 when it does not happen within `seconds`.
inline void wait_until(hsa_signal_t signal, hsa_signal_value_t value, unsigned seconds = 60) {
  for (unsigned i = 0; i < seconds * 2000; ++i) {
    if (hsa_signal_load_scacquire(signal) == value) return;
    ::usleep(500);
  }
  std::fprintf(stderr, "a signal did not become %lld\n", static_cast<long long>(value));
  std::exit(3);
}

template <typename... Args>
void* arguments(const Machine& machine, Args... args) {
  auto* p = static_cast<char*>(machine.allocate(machine.kernarg, 512));
  std::memset(p, 0, 512);
  std::size_t at = 0;
  const auto put = [&](const void* value, std::size_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    std::memcpy(p + at, value, bytes);
    at += bytes;
  };
  (put(&args, sizeof args), ...);
  return p;
}

inline bool flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return true;
  }
  return false;
}

inline long option(int argc, char** argv, const char* name, long otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return std::strtol(argv[i + 1], nullptr, 0);
  }
  return otherwise;
}

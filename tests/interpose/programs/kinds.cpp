// One dispatch on memory of a kind that HIP programs seldom use: --vmem, --fine, --lock, --executable (the
// module's variables), --free: other memory is freed as soon as the dispatch is submitted.
#include <sys/mman.h>

#include "hsa_program.h"

int main(int argc, char** argv) {
  const Machine machine;
  const Code code(machine);
  Queue queue(machine, 16, HSA_QUEUE_TYPE_MULTI);
  const hsa_signal_t done = new_signal();
  int* values = nullptr;
  const char* kernel = "add_one";
  if (flag(argc, argv, "--vmem")) {
    void* va = nullptr;
    constexpr std::size_t kBytes = 4 << 20;
    CHECK(hsa_amd_vmem_address_reserve(&va, 2 * kBytes, 0, 0));
    hsa_amd_vmem_alloc_handle_t memory{};
    CHECK(hsa_amd_vmem_handle_create(machine.device, kBytes, MEMORY_TYPE_NONE, 0, &memory));
    CHECK(hsa_amd_vmem_map(va, kBytes, 0, memory, 0));
    const hsa_amd_memory_access_desc_t access{HSA_ACCESS_PERMISSION_RW, machine.gpu};
    CHECK(hsa_amd_vmem_set_access(va, kBytes, &access, 1));
    values = static_cast<int*>(va);
    const std::vector<int> start(1000, 41);
    CHECK(hsa_memory_copy(values, start.data(), start.size() * sizeof(int)));
  } else if (flag(argc, argv, "--lock")) {
    auto* own =
        static_cast<int*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < 1000; ++i) own[i] = 41;
    void* seen = nullptr;
    hsa_agent_t gpu = machine.gpu;
    CHECK(hsa_amd_memory_lock(own, 8192, &gpu, 1, &seen));
    values = static_cast<int*>(seen);
  } else if (flag(argc, argv, "--fine")) {
    values = static_cast<int*>(machine.allocate(machine.host, 4000));
    for (int i = 0; i < 1000; ++i) values[i] = 41;
  } else if (flag(argc, argv, "--executable")) {
    values = machine.device_ints(1000, 41);
    kernel = "use_variables";
  } else {
    values = machine.device_ints(1000, 41);
  }
  void* args = arguments(machine, values, 1000);
  queue.submit({dispatch(code.kernel(kernel), args, 1024, done)});
  if (flag(argc, argv, "--free")) {
    // Memory that the dispatch may still use is freed by a program that waits first; one that frees something
    // else must not disturb what is saved.
    int* other = machine.device_ints(1000, 1);
    CHECK(hsa_amd_memory_pool_free(other));
  }
  wait_until(done, 0);
  std::printf("kinds: %d\n", Machine::device_int(values));
  CHECK(hsa_queue_destroy(queue.queue));
  CHECK(hsa_shut_down());
}

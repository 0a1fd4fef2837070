// Memory: pools, access, pointer information, locks, copies, virtual memory, SVM. argv[1]: code.
#include <sys/mman.h>
#include <unistd.h>

#include "hsa_program.h"

namespace {

hsa_amd_pointer_info_t info_of(const void* pointer, std::vector<hsa_agent_t>* accessible = nullptr) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  std::uint32_t count = 0;
  hsa_agent_t* agents = nullptr;
  OK(hsa_amd_pointer_info(pointer, &info, std::malloc, &count, &agents));
  if (accessible != nullptr) accessible->assign(agents, agents + count);
  std::free(agents);
  return info;
}

void pointers(const Machine& m) {
  auto* data = allocate<char>(m.device, 10000);
  std::vector<hsa_agent_t> who;
  hsa_amd_pointer_info_t info = info_of(data + 5000, &who);
  CHECK(info.type == HSA_EXT_POINTER_TYPE_HSA && info.agentBaseAddress == data && info.sizeInBytes == 12288);
  CHECK(info.agentOwner.handle == m.gpu.handle &&
        info.global_flags == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
  int mark = 0;
  OK(hsa_amd_pointer_info_set_userdata(data + 1, &mark));
  CHECK(info_of(data).userData == &mark);
  CHECK(info_of(data + 12288).type == HSA_EXT_POINTER_TYPE_UNKNOWN);  // just past the end
  CHECK(info_of(&mark).type == HSA_EXT_POINTER_TYPE_UNKNOWN);

  // The device library's malloc masks addresses to find its slabs, which take 2 MiB or more.
  for (std::size_t bytes : {std::size_t{2} << 20, (std::size_t{8} << 20) + 4096}) {
    auto* large = allocate<char>(m.device, bytes);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(large) % (2 << 20), 0u);
    std::memset(large, 1, bytes);
    CHECK(info_of(large + bytes - 1).agentBaseAddress == large);
    OK(hsa_amd_memory_pool_free(large));
  }

  auto* host = allocate<char>(m.host_fine, 4096);
  info_of(host, &who);
  CHECK(who.size() == 1 && who[0].handle == m.cpus[0].handle);
  OK(hsa_amd_agents_allow_access(1, &m.gpu, nullptr, host));
  info_of(host, &who);
  CHECK(who.size() == 2);

  static int freed = 0;
  OK(hsa_amd_register_deallocation_callback(data, [](void*, void* n) { ++*static_cast<int*>(n); }, &freed));
  OK(hsa_amd_memory_pool_free(data));
  CHECK_EQ(freed, 1);
  FAILS(HSA_STATUS_ERROR_INVALID_ALLOCATION, hsa_amd_memory_pool_free(data));
  OK(hsa_amd_memory_pool_free(host));
}

// A kernel writes to locked memory, through locks that overlap and go away one by one.
void locks(const Machine& m, const Module& code) {
  std::vector<std::uint32_t> memory(100000);
  char* base = reinterpret_cast<char*>(memory.data());
  void *first = nullptr, *second = nullptr, *again = nullptr;
  OK(hsa_amd_memory_lock(base, 200000, const_cast<hsa_agent_t*>(&m.gpu), 1, &first));
  OK(hsa_amd_memory_lock(base + 100000, 300000, nullptr, 0, &second));
  OK(hsa_amd_memory_lock_to_pool(base, 200000, nullptr, 0, m.host_fine, 0, &again));
  hsa_amd_pointer_info_t info = info_of(base + 16);
  CHECK(info.type == HSA_EXT_POINTER_TYPE_LOCKED && info.hostBaseAddress == base &&
        info.sizeInBytes == 200000);
  hsa_queue_t* queue = make_queue(m.gpu);
  hsa_signal_t done = make_signal(1);
  auto add = [&](std::size_t at, std::uint32_t count) {
    const std::uint32_t before = memory[at + count - 1];
    hsa_signal_store_relaxed(done, 1);
    auto packet = dispatch_packet(m, code.kernel("add"), count, done, memory.data() + at, count);
    submit(queue, &packet);
    WAIT_ZERO(done);
    CHECK_EQ(memory[at + count - 1], before + count);
  };
  add(0, 100000);
  OK(hsa_amd_memory_unlock(base));
  add(1000, 1024);  // still locked once more
  OK(hsa_amd_memory_unlock(base));
  FAILS(HSA_STATUS_ERROR_INVALID_ALLOCATION, hsa_amd_memory_unlock(base));
  add(60000, 1024);  // what the second lock holds
  OK(hsa_amd_memory_unlock(base + 100000));
  // Locking memory of the runtime's own changes nothing, and unlocking neither.
  auto* own = allocate(m.device, 1024);
  OK(hsa_amd_memory_lock(own + 16, 64, nullptr, 0, &first));
  OK(hsa_amd_memory_unlock(own + 16));
  hsa_signal_store_relaxed(done, 1);
  auto packet = dispatch_packet(m, code.kernel("add"), 1024, done, own, 1024u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  OK(hsa_queue_destroy(queue));
}

void copies(const Machine& m) {
  auto* a = allocate(m.device, 1 << 20);
  auto* b = allocate(m.device, 1 << 20);
  OK(hsa_amd_memory_fill(a, 0x01020304, 1 << 20));
  CHECK(a[0] == 0x01020304 && a[(1 << 20) - 1] == 0x01020304);
  FAILS(HSA_STATUS_ERROR_INVALID_ALLOCATION, hsa_amd_memory_fill(a, 0, (1 << 20) + 1024));
  FAILS(HSA_STATUS_ERROR_INVALID_ALLOCATION, hsa_memory_copy(b, a, (4 << 20) + 1));
  // A copy waits for its signals, and one that waits does not hold up another.
  OK(hsa_amd_profiling_async_copy_enable(true));
  hsa_signal_t gate = make_signal(1), waits = make_signal(1), passes = make_signal(1);
  OK(hsa_amd_memory_async_copy(b, m.gpu, a, m.gpu, 4 << 20, 1, &gate, waits));
  OK(hsa_amd_memory_async_copy_on_engine(b, m.gpu, a, m.gpu, 16, 0, nullptr, passes, HSA_AMD_SDMA_ENGINE_1,
                                         false));
  WAIT_ZERO(passes);
  CHECK(b[0] == 0x01020304 && b[4] == 0);
  CHECK_EQ(hsa_signal_load_relaxed(waits), 1);
  hsa_signal_store_relaxed(gate, 0);
  WAIT_ZERO(waits);
  CHECK_EQ(b[(1 << 20) - 1], 0x01020304);
  hsa_amd_profiling_async_copy_time_t time{};
  OK(hsa_amd_profiling_get_async_copy_time(waits, &time));
  CHECK(time.end > time.start);
  // An error of what a copy waits for becomes its own.
  hsa_signal_store_relaxed(gate, -3);
  hsa_signal_store_relaxed(waits, 1);
  OK(hsa_amd_memory_async_copy(a, m.gpu, b, m.gpu, 16, 1, &gate, waits));
  CHECK_EQ(hsa_signal_wait_relaxed(waits, HSA_SIGNAL_CONDITION_LT, 0, 60 * kSecond, HSA_WAIT_STATE_BLOCKED),
           -3);
  // A rectangle: 8 bytes by 3 rows by 2 slices.
  std::vector<char> from(1000), to(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i);
  hsa_pitched_ptr_t src{from.data(), 20, 100}, dst{to.data(), 30, 200};
  hsa_dim3_t src_at{1, 2, 1}, dst_at{3, 0, 0}, range{8, 3, 2};
  hsa_signal_store_relaxed(waits, 1);
  OK(hsa_amd_memory_async_copy_rect(&dst, &dst_at, &src, &src_at, &range, m.gpu, hsaHostToHost, 0, nullptr,
                                    waits));
  WAIT_ZERO(waits);
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 8; ++x)
        CHECK_EQ(to[z * 200 + y * 30 + x + 3], from[(z + 1) * 100 + (y + 2) * 20 + x + 1]);
}

void virtual_memory(const Machine& m, const Module& code) {
  constexpr std::size_t kBytes = 2 << 20;
  void* anywhere = nullptr;
  OK(hsa_amd_vmem_address_reserve(&anywhere, kBytes, 0, 0));
  CHECK(info_of(anywhere).type == HSA_EXT_POINTER_TYPE_RESERVED_ADDR);
  OK(hsa_amd_vmem_address_free(anywhere, kBytes));
  // A free address is given as asked for; one in use gives another, without an error.
  void* wanted = anywhere;
  void* got = nullptr;
  OK(hsa_amd_vmem_address_reserve(&got, kBytes, reinterpret_cast<std::uint64_t>(wanted), 0));
  CHECK(got == wanted);
  void* other = nullptr;
  OK(hsa_amd_vmem_address_reserve(&other, kBytes, reinterpret_cast<std::uint64_t>(wanted), 0));
  CHECK(other != wanted && other != nullptr);
  void* aligned = nullptr;
  OK(hsa_amd_vmem_address_reserve_align(&aligned, kBytes, 0, 1 << 26, 0));
  CHECK_EQ(reinterpret_cast<std::uint64_t>(aligned) % (1 << 26), 0);

  hsa_amd_vmem_alloc_handle_t handle{};
  FAILS(HSA_STATUS_ERROR_INVALID_ARGUMENT,
        hsa_amd_vmem_handle_create(m.host_fine, kBytes, MEMORY_TYPE_NONE, 0, &handle));
  OK(hsa_amd_vmem_handle_create(m.device, kBytes, MEMORY_TYPE_PINNED, 0, &handle));
  OK(hsa_amd_vmem_map(got, kBytes, 0, handle, 0));
  FAILS(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_amd_vmem_map(got, kBytes, 0, handle, 0));  // in use
  OK(hsa_amd_vmem_map(other, kBytes, 0, handle, 0));  // the same memory twice
  hsa_access_permission_t access;
  OK(hsa_amd_vmem_get_access(got, &access, m.gpu));
  CHECK(access == HSA_ACCESS_PERMISSION_NONE);
  hsa_amd_memory_access_desc_t desc{HSA_ACCESS_PERMISSION_RW, m.gpu};
  FAILS(HSA_STATUS_ERROR_INVALID_ALLOCATION,
        hsa_amd_vmem_set_access(static_cast<char*>(got) + 4096, kBytes - 4096, &desc, 1));
  OK(hsa_amd_vmem_set_access(got, kBytes, &desc, 1));
  OK(hsa_amd_vmem_get_access(static_cast<char*>(got) + 5000, &access, m.gpu));
  CHECK(access == HSA_ACCESS_PERMISSION_RW);
  auto* data = static_cast<std::uint32_t*>(got);
  hsa_queue_t* queue = make_queue(m.gpu);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("add"), 1024, done, data, 1024u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(static_cast<std::uint32_t*>(other)[1023], 1024);
  CHECK(info_of(data + 4).type == HSA_EXT_POINTER_TYPE_HSA);

  int fd = -1;
  OK(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
  hsa_amd_vmem_alloc_handle_t imported{}, retained{};
  OK(hsa_amd_vmem_import_shareable_handle(fd, &imported));
  close(fd);
  OK(hsa_amd_vmem_map(aligned, kBytes, 0, imported, 0));
  CHECK_EQ(static_cast<std::uint32_t*>(aligned)[1023], 1024);
  OK(hsa_amd_vmem_retain_alloc_handle(&retained, got));
  CHECK_EQ(retained.handle, handle.handle);
  hsa_amd_memory_pool_t pool{};
  hsa_amd_memory_type_t type;
  OK(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type));
  CHECK(pool.handle == m.device.handle && type == MEMORY_TYPE_PINNED);
  FAILS(HSA_STATUS_ERROR_RESOURCE_FREE, hsa_amd_vmem_address_free(got, kBytes));  // still mapped
  OK(hsa_amd_vmem_handle_release(handle));
  OK(hsa_amd_vmem_handle_release(handle));
  CHECK_EQ(data[1023], 1024);  // mappings keep the memory
  for (void* mapped : {got, other, aligned}) {
    OK(hsa_amd_vmem_unmap(mapped, kBytes));
    OK(hsa_amd_vmem_address_free(mapped, kBytes));
  }
  OK(hsa_queue_destroy(queue));
}

void shared_virtual_memory(const Machine& m, const Module& code) {
  constexpr std::size_t kBytes = 1 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  hsa_amd_svm_attribute_pair_t set[] = {{HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, m.gpu.handle},
                                        {HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 1}};
  OK(hsa_amd_svm_attributes_set(memory, kBytes / 2, set, 2));
  hsa_amd_svm_attribute_pair_t get[] = {{HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, m.gpu.handle},
                                        {HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 0}};
  OK(hsa_amd_svm_attributes_get(memory, kBytes / 2, get, 2));
  CHECK(get[0].attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE && get[1].value == 1);
  get[0] = {HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, m.gpu.handle};
  OK(hsa_amd_svm_attributes_get(memory, kBytes, get, 1));  // half of it is not
  CHECK(get[0].attribute == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS);
  hsa_queue_t* queue = make_queue(m.gpu);
  hsa_signal_t done = make_signal(1), moved = make_signal(1);
  OK(hsa_amd_svm_prefetch_async(memory, kBytes / 2, m.gpu, 0, nullptr, moved));
  WAIT_ZERO(moved);
  auto packet =
      dispatch_packet(m, code.kernel("add"), 1024, done, static_cast<std::uint32_t*>(memory), 1024u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(static_cast<std::uint32_t*>(memory)[1023], 1024);
  // HIP unmaps managed memory without a word; memory that the runtime maps there later is accessible all the
  // same.
  munmap(memory, kBytes);
  void* reserved = nullptr;
  OK(hsa_amd_vmem_address_reserve(&reserved, kBytes, reinterpret_cast<std::uint64_t>(memory), 0));
  CHECK(reserved == memory);
  hsa_amd_vmem_alloc_handle_t handle{};
  OK(hsa_amd_vmem_handle_create(m.device, kBytes, MEMORY_TYPE_NONE, 0, &handle));
  OK(hsa_amd_vmem_map(reserved, kBytes, 0, handle, 0));
  hsa_amd_memory_access_desc_t desc{HSA_ACCESS_PERMISSION_RW, m.gpu};
  OK(hsa_amd_vmem_set_access(reserved, kBytes, &desc, 1));
  hsa_signal_store_relaxed(done, 1);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(static_cast<std::uint32_t*>(memory)[1023], 1024);
  OK(hsa_queue_destroy(queue));
}

}  // namespace

int main(int, char** argv) {
  Machine m = open_machine();
  Module code = load_module(m.gpu, argv[1]);
  pointers(m);
  locks(m, code);
  copies(m);
  virtual_memory(m, code);
  shared_virtual_memory(m, code);
  OK(hsa_shut_down());
  std::puts("memory ok");
}

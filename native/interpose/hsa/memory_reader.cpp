#include "interpose/hsa/memory_reader.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "interpose/common/names.h"
#include "interpose/hsa/api.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// For sandboxes that forbid process_vm_readv.
bool read_through_proc(std::uint64_t address, unsigned char* to, std::size_t bytes) {
  const int fd = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  while (bytes != 0) {
    const ssize_t n = ::pread(fd, to, bytes, static_cast<off_t>(address));
    if (n <= 0) break;
    to += n, address += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
  const int error = errno;
  ::close(fd);
  errno = error == EIO ? EFAULT : error;
  return bytes == 0;
}

}  // namespace

bool read_own_memory(std::uint64_t address, void* out, std::size_t bytes) {
  auto* to = static_cast<unsigned char*>(out);
  while (bytes != 0) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (n < 0 && (errno == EPERM || errno == ENOSYS)) return read_through_proc(address, to, bytes);
    if (n <= 0) return false;
    to += n, address += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

std::string read_allocation(const Allocation& allocation, std::uint64_t offset, void* out,
                            std::size_t bytes) {
  if (!allocation.refusal.empty()) return allocation.refusal;
  if (allocation.host_memory()) {
    const std::uint64_t from = allocation.host_address != 0 ? allocation.host_address : allocation.address;
    if (read_own_memory(from + offset, out, bytes)) return {};
    const char* reason = errno == EFAULT ? "it is no longer mapped in the process" : std::strerror(errno);
    // A process that may not read itself this way (a sandbox) still has the runtime's own copy for pool
    // memory.
    if (allocation.kind != snapshot::RegionKind::host && allocation.kind != snapshot::RegionKind::kernarg)
      return reason;
  }
  const auto* from = reinterpret_cast<const void*>(allocation.address + offset);
  const hsa_status_t status = api().core.hsa_memory_copy_fn(out, from, bytes);
  if (status == HSA_STATUS_SUCCESS) return {};
  return "hsa_memory_copy gave status " + hex(status);
}

unsigned HsaImageMemory::workers() const { return std::clamp(std::thread::hardware_concurrency(), 2u, 4u); }

StagingPointer HsaImageMemory::staging(std::size_t bytes) {
  void* p = nullptr;
  if (pool_.handle != 0 &&
      api().amd.hsa_amd_memory_pool_allocate_fn(pool_, bytes, 0, &p) == HSA_STATUS_SUCCESS) {
    if (api().amd.hsa_amd_agents_allow_access_fn(1, &agent_, nullptr, p) == HSA_STATUS_SUCCESS) {
      return {static_cast<unsigned char*>(p),
              [](unsigned char* data) { api().amd.hsa_amd_memory_pool_free_fn(data); }};
    }
    api().amd.hsa_amd_memory_pool_free_fn(p);
  }
  auto* const data = static_cast<unsigned char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  if (data == nullptr) throw std::bad_alloc();
  return {data, [](unsigned char* of_heap) { std::free(of_heap); }};
}

}  // namespace kerncap::interpose

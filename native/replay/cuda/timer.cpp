#include "replay/cuda/timer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>

#include "abi/cuda_load.h"
#include "interpose/cuda/cupti_library.h"
#include "replay/cuda/block_hash.h"

namespace kerncap::replay {
namespace {

using namespace abi;  // NOLINT: the ABI's own names

constexpr std::size_t kBufferBytes = 64u << 10;

Cupti cupti;
std::mutex mutex;
std::vector<KernelTime> records;  // not taken yet; under the mutex

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;
}

void complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernelPrefix*>(record);
    if (kernel.name != nullptr && std::strcmp(kernel.name, kHashKernel) == 0) continue;
    const std::lock_guard lock(mutex);
    records.push_back({kernel.start, kernel.end});
  }
  std::free(buffer);
}

}  // namespace

bool start_kernel_records() {
  std::string why;
  void* library = interpose::cuda::open_cupti(&why);
  return library != nullptr && load_functions(library, cupti) == nullptr &&
         cupti.cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS &&
         cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
}

bool take_kernel_records(std::size_t count, std::vector<KernelTime>* times) {
  cupti.cuptiActivityFlushAll(0);
  const std::lock_guard lock(mutex);
  if (records.size() < count) return false;
  std::sort(records.begin(), records.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.start < b.start; });
  times->assign(records.end() - static_cast<std::ptrdiff_t>(count), records.end());
  records.clear();
  return true;
}

void drop_kernel_records() {
  cupti.cuptiActivityFlushAll(0);
  const std::lock_guard lock(mutex);
  records.clear();
}

}  // namespace kerncap::replay

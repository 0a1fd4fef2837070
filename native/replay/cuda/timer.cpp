#include "replay/cuda/timer.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "abi/cuda_load.h"
#include "interpose/cuda/cupti_library.h"

namespace kerncap::replay {
namespace {

using namespace abi;  // NOLINT: the ABI's own names

constexpr std::size_t kBufferBytes = 64u << 10;

Cupti cupti;
std::atomic<std::uint64_t> last_start{0}, last_end{0}, records{0};

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
    last_start.store(kernel.start);
    last_end.store(kernel.end);
    records.fetch_add(1);
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

bool take_kernel_record(std::uint64_t* start, std::uint64_t* end) {
  cupti.cuptiActivityFlushAll(0);
  if (records.exchange(0) == 0) return false;
  *start = last_start.load();
  *end = last_end.load();
  return true;
}

}  // namespace kerncap::replay

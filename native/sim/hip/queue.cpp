#include "sim/hip/queue.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "abi/hsa_functions.h"

namespace kerncap::sim::hip {
namespace {

constexpr std::size_t kSegments = 16;
constexpr std::size_t kSegmentBytes = 64 * 1024;
constexpr std::size_t kKernargAlignment = 256;
constexpr std::size_t kMaxKept = 512;
constexpr std::uint32_t kDefaultPackets = 16384;

// AMD's HIP ends the process when a queue fails; programs and tools count on seeing SIGABRT.
void queue_failed(abi::hsa_status_t status, abi::hsa_queue_t*, void*) {
  const char* text = nullptr;
  if (abi::hsa_status_string(status, &text) != abi::HSA_STATUS_SUCCESS || text == nullptr) text = "unknown";
  std::fprintf(stderr, "hip: the GPU queue failed, the program ends: %s (0x%x)\n", text,
               static_cast<unsigned>(status));
  std::abort();
}

std::uint32_t wanted_packets(const Gpu& gpu) {
  std::uint32_t packets = kDefaultPackets;
  if (const char* text = std::getenv("ROC_AQL_QUEUE_SIZE")) {
    const unsigned long value = std::strtoul(text, nullptr, 10);
    if (value >= 4 && value <= kDefaultPackets) packets = std::bit_ceil(static_cast<std::uint32_t>(value));
  }
  return std::min(packets, gpu.max_queue_packets);
}

constexpr std::uint16_t header_of(abi::hsa_packet_type_t type) {
  return static_cast<std::uint16_t>(
      (type << abi::HSA_PACKET_HEADER_TYPE) | (1U << abi::HSA_PACKET_HEADER_BARRIER) |
      (abi::HSA_FENCE_SCOPE_SYSTEM << abi::HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
      (abi::HSA_FENCE_SCOPE_SYSTEM << abi::HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE));
}

}  // namespace

std::unique_ptr<HardwareQueue> HardwareQueue::create(const Runtime& rt, Gpu& gpu) {
  std::unique_ptr<HardwareQueue> made(new HardwareQueue);
  constexpr std::uint32_t kNoHint = UINT32_MAX;
  if (abi::hsa_queue_create(gpu.agent, wanted_packets(gpu), abi::HSA_QUEUE_TYPE_MULTI, queue_failed, nullptr,
                            kNoHint, kNoHint, &made->queue_) != abi::HSA_STATUS_SUCCESS) {
    return nullptr;
  }
  abi::hsa_amd_profiling_set_profiler_enabled(made->queue_, 1);
  if (abi::hsa_amd_memory_pool_allocate(rt.host_kernarg, kSegments * kSegmentBytes, 0, &made->memory_) !=
          abi::HSA_STATUS_SUCCESS ||
      abi::hsa_amd_agents_allow_access(1, &gpu.agent, nullptr, made->memory_) != abi::HSA_STATUS_SUCCESS) {
    return nullptr;
  }
  made->segments_.resize(kSegments);
  for (std::size_t i = 0; i < kSegments; ++i) {
    made->segments_[i].base = static_cast<std::byte*>(made->memory_) + i * kSegmentBytes;
  }
  return made;
}

HardwareQueue::~HardwareQueue() {
  if (queue_ != nullptr) abi::hsa_queue_destroy(queue_);
  if (memory_ != nullptr) abi::hsa_amd_memory_pool_free(memory_);
}

std::uint32_t HardwareQueue::shared_aperture() const {
  return reinterpret_cast<const abi::amd_queue_v2_t*>(queue_)->group_segment_aperture_base_hi;
}

std::uint32_t HardwareQueue::private_aperture() const {
  return reinterpret_cast<const abi::amd_queue_v2_t*>(queue_)->private_segment_aperture_base_hi;
}

void* HardwareQueue::kernarg(std::size_t bytes) {
  const std::size_t rounded = (bytes + kKernargAlignment - 1) & ~(kKernargAlignment - 1);
  if (rounded > kSegmentBytes) return nullptr;
  if (segments_[current_].used + rounded > kSegmentBytes) next_segment();  // before the packets that come
  Segment& segment = segments_[current_];
  void* memory = segment.base + segment.used;
  segment.used += rounded;
  return memory;
}

void HardwareQueue::next_segment() {
  SignalRef retired = make_signal();
  if (retired == nullptr) {
    std::fprintf(stderr, "hip: no HSA signal left for the kernel arguments, the program ends\n");
    std::abort();
  }
  put_barrier({}, retired);
  segments_[current_].retired = std::move(retired);
  current_ = (current_ + 1) % segments_.size();
  Segment& segment = segments_[current_];
  if (segment.retired != nullptr) segment.retired->wait();
  segment.retired.reset();
  segment.kept.clear();
  segment.used = 0;
}

void HardwareQueue::keep(const SignalRef& signal) { segments_[current_].kept.push_back(signal); }

void* HardwareQueue::next_packet() {
  index_ = abi::hsa_queue_add_write_index_screlease(queue_, 1);
  while (index_ - abi::hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) std::this_thread::yield();
  return static_cast<std::byte*>(queue_->base_address) + (index_ & (queue_->size - 1)) * 64;
}

void HardwareQueue::submit(void* packet, std::uint16_t header, std::uint16_t setup) {
  // The header makes the packet valid, so it is stored last, together with the 16 bits beside it.
  const std::uint32_t word = header | static_cast<std::uint32_t>(setup) << 16;
  std::atomic_ref(*static_cast<std::uint32_t*>(packet)).store(word, std::memory_order_release);
  abi::hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<std::int64_t>(index_));
}

void HardwareQueue::dispatch(const Dispatch& what) {
  abi::hsa_kernel_dispatch_packet_t packet{};
  packet.workgroup_size_x = static_cast<std::uint16_t>(what.block[0]);
  packet.workgroup_size_y = static_cast<std::uint16_t>(what.block[1]);
  packet.workgroup_size_z = static_cast<std::uint16_t>(what.block[2]);
  packet.grid_size_x = what.grid[0];
  packet.grid_size_y = what.grid[1];
  packet.grid_size_z = what.grid[2];
  packet.private_segment_size = what.private_bytes;
  packet.group_segment_size = what.group_bytes;
  packet.kernel_object = what.kernel_object;
  packet.kernarg_address = what.kernarg;
  void* slot = next_packet();
  std::memcpy(static_cast<std::byte*>(slot) + 4, reinterpret_cast<const std::byte*>(&packet) + 4,
              sizeof(packet) - 4);
  constexpr std::uint16_t kDimensions = 3;
  submit(slot, header_of(abi::HSA_PACKET_TYPE_KERNEL_DISPATCH), kDimensions);
}

void HardwareQueue::put_barrier(std::span<const SignalRef> waits_for, const SignalRef& completes) {
  do {
    const std::size_t count = std::min<std::size_t>(waits_for.size(), 5);
    abi::hsa_barrier_and_packet_t packet{};
    for (std::size_t i = 0; i < count; ++i) packet.dep_signal[i] = waits_for[i]->handle();
    waits_for = waits_for.subspan(count);
    if (waits_for.empty() && completes != nullptr) packet.completion_signal = completes->handle();
    void* slot = next_packet();
    std::memcpy(static_cast<std::byte*>(slot) + 4, reinterpret_cast<const std::byte*>(&packet) + 4,
                sizeof(packet) - 4);
    submit(slot, header_of(abi::HSA_PACKET_TYPE_BARRIER_AND), 0);
  } while (!waits_for.empty());
}

void HardwareQueue::barrier(std::span<const SignalRef> waits_for, const SignalRef& completes) {
  if (segments_[current_].kept.size() + waits_for.size() + 1 > kMaxKept) next_segment();
  for (const SignalRef& signal : waits_for) keep(signal);
  if (completes != nullptr) keep(completes);
  put_barrier(waits_for, completes);
}

}  // namespace kerncap::sim::hip

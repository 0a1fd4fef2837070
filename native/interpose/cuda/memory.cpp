#include "interpose/cuda/memory.h"

#include <algorithm>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "interpose/cuda/driver.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// What a worker thread of a capture has while it lives.
thread_local std::optional<OwnCalls> worker_calls;
thread_local CUstream worker_stream = nullptr;

}  // namespace

void Memory::allocated(std::uint64_t address, std::uint64_t bytes, snapshot::RegionKind kind,
                       std::uint32_t device, std::string refusal) {
  if (address == 0 || bytes == 0) return;
  unmapped(address, bytes);  // whatever was there is gone, even if nobody told
  Allocation allocation;
  allocation.address = address;
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.owner = device + 1;
  allocation.refusal = std::move(refusal);
  const std::lock_guard lock(mutex_);
  by_address_[address] = std::move(allocation);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void Memory::freed(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  bytes_.fetch_sub(found->second.bytes, std::memory_order_relaxed);
  by_address_.erase(found);
}

void Memory::unmapped(std::uint64_t address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto at = by_address_.lower_bound(address);
  if (at != by_address_.begin() && std::prev(at)->second.end() > address) --at;
  while (at != by_address_.end() && at->first < address + bytes) {
    bytes_.fetch_sub(at->second.bytes, std::memory_order_relaxed);
    at = by_address_.erase(at);
  }
}

std::vector<Allocation> Memory::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Allocation> list;
  list.reserve(by_address_.size());
  for (const auto& [address, allocation] : by_address_) list.push_back(allocation);
  return list;
}

unsigned CudaImageMemory::workers() const { return std::clamp(std::thread::hardware_concurrency(), 2u, 16u); }

StagingPointer CudaImageMemory::staging(std::size_t bytes) {
  worker_calls.emplace();
  void* data = nullptr;
  driver().cuCtxSetCurrent(context_);
  if (worker_stream == nullptr) driver().cuStreamCreate(&worker_stream, CU_STREAM_NON_BLOCKING);
  if (driver().cuMemHostAlloc(&data, bytes, kCudaHostAllocPortable) != CUDA_SUCCESS) throw std::bad_alloc();
  return {static_cast<unsigned char*>(data), [](unsigned char* pinned) {
            driver().cuMemFreeHost(pinned);
            driver().cuStreamDestroy(std::exchange(worker_stream, nullptr));
            worker_calls.reset();
          }};
}

std::string CudaImageMemory::read(const Allocation& allocation, std::uint64_t offset, void* out,
                                  std::size_t bytes) {
  if (!allocation.refusal.empty()) return allocation.refusal;
  // Told apart by address: it may be memory of the host.
  CUresult result = driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(out), allocation.address + offset,
                                           bytes, worker_stream);
  if (result == CUDA_SUCCESS) result = driver().cuStreamSynchronize(worker_stream);
  return result == CUDA_SUCCESS ? std::string() : "copying it from the device gave " + error_text(result);
}

}  // namespace kerncap::interpose::cuda

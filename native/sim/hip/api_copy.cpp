// Copies and fills. Between memory that the device can reach they are ordered in their stream and return at
// once; a copy that touches other host memory returns when it is done.
#include <algorithm>
#include <cstring>

#include "abi/hsa_functions.h"
#include "sim/hip/allocations.h"
#include "sim/hip/error.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;
namespace abi = kerncap::abi;

namespace {

hipError_t check(const void* dst, const void* src, std::size_t bytes, hipMemcpyKind kind) {
  if (dst == nullptr || src == nullptr) return hipErrorInvalidValue;
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  // What the kind calls device memory must be an allocation, and hold all of the range.
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  if ((from_device && !allocations().covers(src, bytes)) ||
      (to_device && !allocations().covers(dst, bytes))) {
    return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t copy_now(void* dst, const void* src, std::size_t bytes) {
  return abi::hsa_memory_copy(dst, src, bytes) == abi::HSA_STATUS_SUCCESS ? hipSuccess : hipErrorInvalidValue;
}

hipError_t copy(void* dst, const void* src, std::size_t bytes, hipMemcpyKind kind, hipStream_t handle,
                bool wait) {
  if (bytes == 0) return hipSuccess;
  if (const hipError_t error = check(dst, src, bytes, kind); error != hipSuccess) return error;
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return current_gpu() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle;
  if (wait || !allocations().covers(dst, bytes) || !allocations().covers(src, bytes)) {
    if (const hipError_t error = synchronize(*stream); error != hipSuccess) return error;
    return copy_now(dst, src, bytes);
  }
  const std::lock_guard lock(stream->gpu().mutex);
  if (const hipError_t error = join_null_stream(*stream); error != hipSuccess) return error;
  return stream->copy(dst, src, bytes);
}

hipError_t copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                   std::size_t width, std::size_t height, hipMemcpyKind kind, hipStream_t stream, bool wait) {
  if (width == 0 || height == 0) return hipSuccess;
  if (width > dst_pitch || width > src_pitch) return hipErrorInvalidPitchValue;
  for (std::size_t row = 0; row < height; ++row) {
    const hipError_t error = copy(static_cast<char*>(dst) + row * dst_pitch,
                                  static_cast<const char*>(src) + row * src_pitch, width, kind, stream, wait);
    if (error != hipSuccess) return error;
  }
  return hipSuccess;
}

// hsa_amd_memory_fill writes whole, aligned words. `unit` divides 4 and `dst` is aligned to it, so the bytes
// before and after those words begin with whole units too.
void fill_now(void* dst, std::uint32_t value, std::size_t unit, std::size_t bytes) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < sizeof(word); i += unit) {
    std::memcpy(reinterpret_cast<unsigned char*>(&word) + i, &value, unit);
  }
  auto* at = static_cast<unsigned char*>(dst);
  const std::size_t head = std::min<std::size_t>(bytes, -reinterpret_cast<std::uintptr_t>(at) & 3);
  const std::size_t words = (bytes - head) / 4;
  const std::size_t tail = bytes - head - words * 4;
  if (head != 0) abi::hsa_memory_copy(at, &word, head);
  if (words != 0) abi::hsa_amd_memory_fill(at + head, word, words);
  if (tail != 0) abi::hsa_memory_copy(at + head + words * 4, &word, tail);
}

hipError_t fill(void* dst, std::uint32_t word, std::size_t unit, std::size_t count, hipStream_t handle,
                bool wait) {
  const std::size_t bytes = unit * count;
  if (bytes == 0) return hipSuccess;
  if (dst == nullptr || reinterpret_cast<std::uintptr_t>(dst) % unit != 0 ||
      !allocations().covers(dst, bytes)) {
    return hipErrorInvalidValue;
  }
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return current_gpu() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle;
  if (wait) {
    if (const hipError_t error = synchronize(*stream); error != hipSuccess) return error;
    fill_now(dst, word, unit, bytes);
    return hipSuccess;
  }
  const std::lock_guard lock(stream->gpu().mutex);
  if (const hipError_t error = join_null_stream(*stream); error != hipSuccess) return error;
  if (stream->idle()) {
    fill_now(dst, word, unit, bytes);
    return hipSuccess;
  }
  return stream->host([=] { fill_now(dst, word, unit, bytes); });
}

}  // namespace

hipError_t hipMemcpy(void* dst, const void* src, size_t bytes, hipMemcpyKind kind) {
  return record(copy(dst, src, bytes, kind, nullptr, true));
}

hipError_t hipMemcpyAsync(void* dst, const void* src, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return record(copy(dst, src, bytes, kind, stream, false));
}

hipError_t hipMemcpyWithStream(void* dst, const void* src, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
  return record(copy(dst, src, bytes, kind, stream, true));
}

hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, void* src, size_t bytes) {
  return record(copy(dst, src, bytes, hipMemcpyHostToDevice, nullptr, true));
}

hipError_t hipMemcpyDtoH(void* dst, hipDeviceptr_t src, size_t bytes) {
  return record(copy(dst, src, bytes, hipMemcpyDeviceToHost, nullptr, true));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t bytes) {
  return record(copy(dst, src, bytes, hipMemcpyDeviceToDevice, nullptr, true));
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, void* src, size_t bytes, hipStream_t stream) {
  return record(copy(dst, src, bytes, hipMemcpyHostToDevice, stream, false));
}

hipError_t hipMemcpyDtoHAsync(void* dst, hipDeviceptr_t src, size_t bytes, hipStream_t stream) {
  return record(copy(dst, src, bytes, hipMemcpyDeviceToHost, stream, false));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t bytes, hipStream_t stream) {
  return record(copy(dst, src, bytes, hipMemcpyDeviceToDevice, stream, false));
}

hipError_t hipMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                       size_t height, hipMemcpyKind kind) {
  return record(copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, true));
}

hipError_t hipMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                            size_t height, hipMemcpyKind kind, hipStream_t stream) {
  return record(copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind, stream, false));
}

hipError_t hipMemset(void* dst, int value, size_t bytes) {
  return record(fill(dst, static_cast<std::uint8_t>(value), 1, bytes, nullptr, true));
}

hipError_t hipMemsetAsync(void* dst, int value, size_t bytes, hipStream_t stream) {
  return record(fill(dst, static_cast<std::uint8_t>(value), 1, bytes, stream, false));
}

hipError_t hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count) {
  return record(fill(dst, value, 1, count, nullptr, true));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count, hipStream_t stream) {
  return record(fill(dst, value, 1, count, stream, false));
}

hipError_t hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count) {
  return record(fill(dst, value, 2, count, nullptr, true));
}

hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count, hipStream_t stream) {
  return record(fill(dst, value, 2, count, stream, false));
}

hipError_t hipMemsetD32(hipDeviceptr_t dst, int value, size_t count) {
  return record(fill(dst, static_cast<std::uint32_t>(value), 4, count, nullptr, true));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream) {
  return record(fill(dst, static_cast<std::uint32_t>(value), 4, count, stream, false));
}

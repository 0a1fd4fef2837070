// From a launch to a dispatch packet: checks, kernel arguments, and the hidden arguments that the compiler
// adds.
#include <algorithm>
#include <cstring>

#include "sim/hip/module.h"
#include "sim/within.h"

namespace kerncap::sim::hip {
namespace {

constexpr std::uint64_t kMaxGrid = UINT32_MAX;

template <typename T>
void put(std::byte* at, std::uint32_t bytes, T value) {
  std::memcpy(at, &value, std::min<std::size_t>(bytes, sizeof(T)));
}

}  // namespace

// LLVM AMDGPUUsage, "Code Object V5 Kernel Argument Metadata": all that is not written here is 0.
void Function::fill_hidden(std::byte* kernarg, const HardwareQueue& queue, const Launch& how) const {
  for (const KernelArgument& argument : layout_.arguments) {
    if (!argument.hidden() || !within(argument.offset, argument.size, layout_.kernarg_bytes)) continue;
    std::byte* at = kernarg + argument.offset;
    const std::string_view kind = argument.kind;
    const std::size_t axis = kind.ends_with("_y") ? 1 : kind.ends_with("_z") ? 2 : 0;
    if (kind.starts_with("hidden_block_count_")) {
      put(at, argument.size, how.grid[axis]);
    } else if (kind.starts_with("hidden_group_size_")) {
      put(at, argument.size, how.block[axis]);
    } else if (kind == "hidden_grid_dims") {
      put(at, argument.size, 3U);
    } else if (kind == "hidden_dynamic_lds_size") {
      put(at, argument.size, how.dynamic_lds);
    } else if (kind == "hidden_private_base") {
      put(at, argument.size, queue.private_aperture());
    } else if (kind == "hidden_shared_base") {
      put(at, argument.size, queue.shared_aperture());
    } else if (kind == "hidden_queue_ptr") {
      put(at, argument.size, reinterpret_cast<std::uint64_t>(queue.handle()));
    }
  }
}

hipError_t Function::launch(Stream& stream, const Launch& how, void* const* parameters,
                            std::string_view block) const {
  Dispatch what{};
  std::uint64_t block_items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (how.grid[axis] == 0 || how.block[axis] == 0 || how.block[axis] > UINT16_MAX) {
      return hipErrorInvalidConfiguration;
    }
    const std::uint64_t items = std::uint64_t{how.grid[axis]} * how.block[axis];
    if (items > kMaxGrid) return hipErrorInvalidConfiguration;
    what.grid[axis] = static_cast<std::uint32_t>(items);
    what.block[axis] = how.block[axis];
    block_items *= how.block[axis];
  }
  Gpu& gpu = stream.gpu();
  const std::uint64_t group_bytes = std::uint64_t{group_bytes_} + how.dynamic_lds;
  if ((layout_.max_block != 0 && block_items > layout_.max_block) || group_bytes > gpu.lds_bytes) {
    return hipErrorInvalidConfiguration;
  }
  what.group_bytes = static_cast<std::uint32_t>(group_bytes);
  what.private_bytes = private_bytes_;
  what.kernel_object = object_;

  const std::lock_guard lock(gpu.mutex);
  if (const hipError_t error = join_null_stream(stream); error != hipSuccess) return error;
  HardwareQueue* queue = stream.prepare();
  if (queue == nullptr) return hipErrorOutOfMemory;
  auto* kernarg = static_cast<std::byte*>(queue->kernarg(std::max<std::size_t>(layout_.kernarg_bytes, 16)));
  if (kernarg == nullptr) return hipErrorInvalidValue;
  std::memset(kernarg, 0, layout_.kernarg_bytes);
  std::memcpy(kernarg, block.data(), std::min<std::size_t>(block.size(), layout_.kernarg_bytes));
  if (parameters != nullptr) {
    for (const KernelArgument& argument : layout_.arguments) {
      if (argument.hidden()) continue;
      if (!within(argument.offset, argument.size, layout_.kernarg_bytes)) return hipErrorInvalidImage;
      std::memcpy(kernarg + argument.offset, *parameters++, argument.size);
    }
  }
  fill_hidden(kernarg, *queue, how);
  what.kernarg = kernarg;
  stream.dispatch(what);
  return hipSuccess;
}

}  // namespace kerncap::sim::hip

#include "sim/device/dispatch.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "sim/within.h"

namespace kerncap::sim {
namespace {

template <class T>
T load(const void* base, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

constexpr std::uint32_t kMaxWorkgroup = 1024;
constexpr std::uint32_t kMaxLds = 65536;
constexpr std::uint32_t kMaxPrivate =
    1u << 20;  // a work-item; the hardware's wave limit is 8 MiB a lane's share

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

std::optional<std::string> parse_dispatch(const void* packet, const AddressSpace& memory,
                                          DispatchInfo* info) {
  const unsigned dimensions = load<std::uint16_t>(packet, 2) & 3u;
  if (dimensions == 0) return "the packet's setup field says 0 dimensions";
  for (unsigned n = 0; n < 3; ++n) {
    info->workgroup_size[n] = n < dimensions ? load<std::uint16_t>(packet, 4 + 2 * n) : 1;
    info->grid[n] = n < dimensions ? load<std::uint32_t>(packet, 12 + 4 * n) : 1;
    if (info->workgroup_size[n] == 0) return "the workgroup size is 0 in dimension " + number(n);
    if (info->grid[n] == 0) return "the grid size is 0 in dimension " + number(n);
    info->groups[n] = static_cast<std::uint32_t>(
        (static_cast<std::uint64_t>(info->grid[n]) + info->workgroup_size[n] - 1) / info->workgroup_size[n]);
  }
  const std::uint64_t size =
      static_cast<std::uint64_t>(info->workgroup_size[0]) * info->workgroup_size[1] * info->workgroup_size[2];
  if (size > kMaxWorkgroup)
    return "a workgroup of " + number(size) + " work-items; the device takes at most " +
           number(kMaxWorkgroup);
  info->private_bytes = (load<std::uint32_t>(packet, 24) + 15u) & ~15u;
  info->lds_bytes = load<std::uint32_t>(packet, 28);
  if (info->lds_bytes > kMaxLds)
    return "a workgroup asks for " + number(info->lds_bytes) + " bytes of LDS; the device has " +
           number(kMaxLds);
  if (info->private_bytes > kMaxPrivate)
    return "a work-item asks for " + number(info->private_bytes) +
           " bytes of private memory; the simulator gives at most " + number(kMaxPrivate);
  const auto object = load<std::uint64_t>(packet, 32);
  info->kernarg = load<std::uint64_t>(packet, 40);
  const auto holder = memory.find(object);
  if (!holder || !within(object - holder->base, 64, holder->end() - holder->base))
    return "kernel_object points to no loaded code object";
  const auto* kd = reinterpret_cast<const void*>(object);
  KernelDescriptor& k = info->kernel;
  k.rsrc3 = load<std::uint32_t>(kd, 44);
  k.rsrc1 = load<std::uint32_t>(kd, 48);
  k.rsrc2 = load<std::uint32_t>(kd, 52);
  k.properties = load<std::uint16_t>(kd, 56);
  k.entry = object + static_cast<std::uint64_t>(load<std::int64_t>(kd, 16));
  k.start = k.entry;
  // "Preloaded Kernel Arguments": waves start 256 bytes later then, behind code for firmware that does not.
  const auto preload = load<std::uint16_t>(kd, 58);
  k.preloaded = std::min<unsigned>(preload & 0x7Fu, std::size(k.arguments));
  if (k.preloaded > 0) {
    const std::uint64_t first = info->kernarg + 4 * (preload >> 7 & 0x1FFu);
    const auto arguments = memory.find(first);
    if (!arguments || !within(first - arguments->base, 4 * k.preloaded, arguments->end() - arguments->base))
      return "the kernel arguments to preload are in no memory";
    std::memcpy(k.arguments, reinterpret_cast<const void*>(first), 4 * k.preloaded);
    k.start = k.entry + 256;
  }
  if ((k.properties & 1u << 10) != 0)
    return "the kernel is compiled for 32-lane waves, which this device does not have";
  return std::nullopt;
}

}  // namespace kerncap::sim

// XXH64 of blocks of device memory, made on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/cuda/runtime.h"

namespace kerncap::replay {

// As CUPTI names the kernel.
inline constexpr char kHashKernel[] = "kerncap_xxh64_lanes";

// The hash of the snapshot::kChecksumBlock bytes at each address, which are multiples of 8; empty where the
// driver does not compile the kernel. Throws ReplayError.
std::vector<std::uint64_t> hash_blocks(const Runtime& runtime, const std::vector<std::uint64_t>& addresses);

}  // namespace kerncap::replay

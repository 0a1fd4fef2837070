// One launch, whichever call made it.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/cuda_cupti.h"
#include "snapshot/records.h"

namespace kerncap::interpose::cuda {

struct Kernel;

struct LaunchShape {
  std::uint32_t grid[3] = {};  // in blocks
  std::uint32_t block[3] = {};
  std::uint32_t dynamic_shared = 0;

  // In work-items, cut off at 2^32 - 1.
  [[nodiscard]] std::uint32_t work_items(int axis) const {
    const std::uint64_t items = std::uint64_t{grid[axis]} * block[axis];
    return items > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(items);
  }
};

// From any of the driver's structs that describe a launch: they name its parts alike.
template <typename Params>
LaunchShape shape_of(const Params& p) {
  return {{p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes};
}

struct Launch : LaunchShape {
  abi::CUfunction function = nullptr;
  abi::CUcontext context = nullptr;
  abi::CUstream stream = nullptr;
  std::uint32_t cluster[3] = {};
  bool cooperative = false;
  std::vector<snapshot::CudaLaunchAttribute> attributes;
  void** parameters = nullptr;
  void** extra = nullptr;
  std::uint32_t correlation = 0;
};

// Attributes that say how a kernel runs. Others tie a launch to more (programmatic events, stream
// serialisation, graph nodes) and mean nothing when the kernel runs alone.
inline constexpr abi::CUlaunchAttributeID kRunAttributes[] = {
    abi::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, abi::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    abi::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    abi::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    abi::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};

// Keeps one of kRunAttributes.
void add_attribute(const abi::CUlaunchAttribute& attribute, Launch& launch);

// From the parameters of a launch call (CUPTI_DRIVER_TRACE_CBID_cuLaunch*). `whole`: with its attributes.
Launch read_launch(abi::CUpti_CallbackId id, const abi::CUpti_CallbackData& data, bool whole);

// The kernel's parameter space as the launch fills it. Throws Refused where the driver does not tell how.
std::vector<unsigned char> pack_parameters(const Launch& launch, const Kernel& kernel);

}  // namespace kerncap::interpose::cuda

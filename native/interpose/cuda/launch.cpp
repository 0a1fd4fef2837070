#include "interpose/cuda/launch.h"

#include <algorithm>
#include <cstring>

#include "interpose/common/memory_image.h"
#include "interpose/cuda/kernels.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

void read_config(const CUlaunchConfig& config, bool whole, Launch& launch) {
  static_cast<LaunchShape&>(launch) = shape_of(config);
  launch.stream = config.hStream;
  if (!whole) return;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (std::ranges::find(kRunAttributes, attribute.id) != std::end(kRunAttributes))
      add_attribute(attribute, launch);
  }
}

}  // namespace

void add_attribute(const CUlaunchAttribute& attribute, Launch& launch) {
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) launch.cooperative = attribute.value.cooperative != 0;
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    const auto& cluster = attribute.value.clusterDim;
    launch.cluster[0] = cluster.x, launch.cluster[1] = cluster.y, launch.cluster[2] = cluster.z;
  }
  snapshot::CudaLaunchAttribute kept{};
  kept.id = static_cast<std::uint32_t>(attribute.id);
  std::memcpy(kept.value, attribute.value.bytes, sizeof kept.value);
  launch.attributes.push_back(kept);
}

Launch read_launch(CUpti_CallbackId id, const CUpti_CallbackData& data, bool whole) {
  Launch launch;
  launch.context = data.context;
  launch.correlation = data.correlationId;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
    const auto& p = *static_cast<const cuLaunchKernelEx_params*>(data.functionParams);
    launch.function = p.f;
    launch.parameters = p.kernelParams;
    launch.extra = p.extra;
    if (p.config != nullptr) read_config(*p.config, whole, launch);
    return launch;
  }
  const auto& p = *static_cast<const cuLaunchKernel_params*>(data.functionParams);
  static_cast<LaunchShape&>(launch) = shape_of(p);
  launch.function = p.f;
  launch.stream = p.hStream;
  launch.parameters = p.kernelParams;
  launch.cooperative = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel ||
                       id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;
  if (!launch.cooperative) launch.extra = p.extra;
  return launch;
}

std::vector<unsigned char> pack_parameters(const Launch& launch, const Kernel& kernel) {
  std::vector<unsigned char> bytes;
  if (launch.parameters == nullptr && launch.extra != nullptr) {
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (void** item = launch.extra; reinterpret_cast<std::uintptr_t>(*item) != kCudaLaunchParamEnd;
         item += 2) {
      const auto marker = reinterpret_cast<std::uintptr_t>(*item);
      if (marker == kCudaLaunchParamBufferPointer) buffer = item[1];
      if (marker == kCudaLaunchParamBufferSize) size = *static_cast<const std::size_t*>(item[1]);
    }
    if (buffer != nullptr)
      bytes.assign(static_cast<const unsigned char*>(buffer),
                   static_cast<const unsigned char*>(buffer) + size);
    return bytes;
  }
  if (!kernel.parameters_known) {
    throw Refused("the driver does not tell where the kernel's parameters lie (it is older than CUDA 12.4)");
  }
  if (launch.parameters == nullptr && !kernel.parameters.empty())
    throw Refused("the launch names no parameters");
  std::size_t end = 0;
  for (const snapshot::CudaParameter& p : kernel.parameters)
    end = std::max<std::size_t>(end, p.offset + p.bytes);
  bytes.resize(end);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const snapshot::CudaParameter& p = kernel.parameters[i];
    std::memcpy(bytes.data() + p.offset, launch.parameters[i], p.bytes);
  }
  return bytes;
}

}  // namespace kerncap::interpose::cuda

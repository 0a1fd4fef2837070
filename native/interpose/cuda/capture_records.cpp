#include "interpose/cuda/capture_records.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "abi/hsa.h"
#include "interpose/common/record_writing.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names
using snapshot::RecordType;

namespace {

int device_attribute(CUdevice device, CUdevice_attribute what) {
  int value = 0;
  return driver().cuDeviceGetAttribute(&value, what, device) == CUDA_SUCCESS ? value : 0;
}

}  // namespace

void CaptureRecords::write(snapshot::CaptureWriter& writer) {
  write_process(writer, capture_.process_.runtime);
  write_device(writer);
  write_code(writer);
  write_dispatch(writer);
  write_launch(writer);
  snapshot::KernargRecord kernarg{};
  kernarg.length = capture_.parameters_.size();
  writer.add(kernarg, RecordType::kernarg,
             {{reinterpret_cast<const char*>(capture_.parameters_.data()), capture_.parameters_.size()}});
  write_regions(writer, *capture_.image_, [this](std::uint32_t code) { return record_id(code); });
}

void CaptureRecords::write_device(snapshot::CaptureWriter& writer) {
  const auto device = static_cast<CUdevice>(capture_.kernel_.device);
  char product[128] = {};
  driver().cuDeviceGetName(product, sizeof product, device);
  const std::string arch =
      "sm_" + std::to_string(device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                             device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const std::string isa = "nvptx64-nvidia-cuda--" + arch, name = product;
  const auto number = [&](CUdevice_attribute what) {
    return static_cast<std::uint32_t>(device_attribute(device, what));
  };
  snapshot::DeviceRecord record{};
  record.index = capture_.kernel_.device;
  record.compute_units = number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  record.wavefront = number(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  record.lds_bytes = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  record.cache_bytes = number(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  record.clock_hz = 1'000'000'000;
  record.isa_length = length(isa);
  record.name_length = length(arch);
  record.product_length = length(name);
  writer.add(record, RecordType::device, {isa, arch, name});
}

std::uint32_t CaptureRecords::record_id(std::uint32_t code) const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]->id == code) return static_cast<std::uint32_t>(i + 1);
  }
  return 0;
}

void CaptureRecords::write_code(snapshot::CaptureWriter& writer) {
  used_.assign(1, capture_.kernel_.code);
  for (const ImageRegion* region : capture_.image_->image()) {
    if (region->code_object == 0 || record_id(region->code_object) != 0) continue;
    for (const Code* code : capture_.codes_) {
      if (code->id == region->code_object) used_.push_back(code);
    }
  }
  for (const Code* code : used_) {
    std::vector<unsigned char> bytes;
    std::string error;
    if (!capture_.process_.code.read(code->hash, bytes, &error)) throw Refused(error);
    writer.add_code_object(code->hash, bytes.data(), bytes.size());
    snapshot::CodeObjectRecord record{};
    record.id = record_id(code->id);
    record.content_hash = code->hash;
    record.content_bytes = code->bytes;
    // Where its variables lie, constants aside: what words in memory may point to.
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max(), high = 0;
    for (const Capture::Variable& variable : capture_.variables_) {
      if (variable.code != code->id || variable.constant) continue;
      low = std::min(low, variable.address);
      high = std::max(high, variable.address + variable.bytes);
    }
    if (low < high) record.load_base = low, record.load_bytes = high - low;
    writer.add(record, RecordType::code_object);
    for (const Capture::Variable& variable : capture_.variables_) {
      if (variable.code != code->id) continue;
      write_variable(writer, record.id, variable.name, variable.address, variable.bytes);
    }
  }
}

void CaptureRecords::write_dispatch(snapshot::CaptureWriter& writer) {
  const Kernel& kernel = capture_.kernel_;
  const Launch& launch = capture_.launch_;
  hsa_kernel_dispatch_packet_t packet{};
  packet.setup = launch.grid[2] > 1 || launch.block[2] > 1   ? 3
                 : launch.grid[1] > 1 || launch.block[1] > 1 ? 2
                                                             : 1;
  packet.workgroup_size_x = static_cast<std::uint16_t>(launch.block[0]);
  packet.workgroup_size_y = static_cast<std::uint16_t>(launch.block[1]);
  packet.workgroup_size_z = static_cast<std::uint16_t>(launch.block[2]);
  packet.grid_size_x = launch.work_items(0);
  packet.grid_size_y = launch.work_items(1);
  packet.grid_size_z = launch.work_items(2);
  packet.private_segment_size = static_cast<std::uint32_t>(kernel.local_bytes);
  packet.group_segment_size = static_cast<std::uint32_t>(kernel.static_shared) + launch.dynamic_shared;

  snapshot::DispatchRecord record{};
  std::memcpy(record.packet, &packet, sizeof record.packet);
  record.kernel_id = kernel.id;
  record.nth_of_kernel = capture_.nth_;
  record.nth_overall = capture_.nth_overall_;
  record.queue_id = reinterpret_cast<std::uint64_t>(launch.stream);
  std::uint64_t start = 0, end = 0;
  if (capture_.process_.activity.watched(&start, &end)) record.start_ns = start, record.end_ns = end;
  record.code_object = record_id(kernel.code->id);
  if (launch.cooperative) record.flags |= snapshot::kCooperative;
  record.reachable_bytes = capture_.image_->reachable_bytes();
  record.allocated_bytes = capture_.process_.memory.bytes();
  record.memory_mode = static_cast<std::uint32_t>(capture_.request_.memory);
  record.symbol_length = length(kernel.symbol);
  record.demangled_length = length(kernel.demangled);
  writer.add(record, RecordType::dispatch, {kernel.symbol, kernel.demangled});
}

void CaptureRecords::write_launch(snapshot::CaptureWriter& writer) {
  const Kernel& kernel = capture_.kernel_;
  const Launch& launch = capture_.launch_;
  snapshot::CudaLaunchRecord record{};
  std::copy_n(launch.grid, 3, record.grid);
  std::copy_n(launch.block, 3, record.block);
  std::copy_n(launch.cluster, 3, record.cluster);
  record.static_shared = static_cast<std::uint32_t>(kernel.static_shared);
  record.dynamic_shared = launch.dynamic_shared;
  record.flags = launch.cooperative ? snapshot::kCudaCooperative : 0u;
  record.registers = static_cast<std::uint32_t>(kernel.registers);
  record.local_bytes = static_cast<std::uint32_t>(kernel.local_bytes);
  // As they are now: a program sets them before it launches.
  CUmodule module = nullptr;
  CUfunction function = launch.function;
  if (driver().cuFuncGetModule(&module, function) != CUDA_SUCCESS && driver().cuKernelGetFunction != nullptr)
    driver().cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(launch.function));
  const auto get = [&](CUfunction_attribute what) {
    int value = -1;
    return driver().cuFuncGetAttribute(&value, what, function) == CUDA_SUCCESS ? value : -1;
  };
  record.max_dynamic_shared = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  record.shared_carveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  record.non_portable_cluster = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  record.cluster_policy = get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  record.parameter_count = static_cast<std::uint32_t>(kernel.parameters.size());
  record.attribute_count = static_cast<std::uint32_t>(launch.attributes.size());
  const auto text = [](const auto& list) {
    return std::string_view(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(list[0]));
  };
  writer.add(record, RecordType::cuda_launch, {text(kernel.parameters), text(launch.attributes)});
}

}  // namespace kerncap::interpose::cuda

#include "interpose/hsa/capture_records.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "interpose/common/image_regions.h"
#include "interpose/common/names.h"
#include "interpose/common/record_writing.h"
#include "interpose/hsa/api.h"
#include "interpose/hsa/memory_reader.h"
#include "interpose/hsa/process.h"
#include "snapshot/records.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names
using snapshot::RecordType;
using snapshot::RegionKind;

CaptureRecords::CaptureRecords(Process& process, const AgentInfo& agent, const Kernel& kernel,
                               std::uint64_t kernel_object)
    : process_(process), agent_(agent), kernel_(kernel) {
  for (LoadedCode& code : process.kernels.loaded()) {
    if (code.agent.handle == agent.handle.handle) loaded_.push_back(std::move(code));
  }
  for (const LoadedCode& code : loaded_) {
    if (code.content_bytes == 0 || code.content_hash != kernel.code_hash) continue;
    // The same code may be loaded more than once.
    if (kernel_code_ == nullptr || kernel_object - code.load_base < code.load_bytes) kernel_code_ = &code;
  }
  if (kernel_code_ == nullptr) {
    throw Refused("the code object of " + demangle(kernel.symbol) +
                  " was loaded in a way that kerncap does not see, so its bytes cannot be had");
  }
}

std::uint64_t CaptureRecords::hostcall_buffer(const std::vector<unsigned char>& kernargs) const {
  if (kernel_.hostcall_offset < 0) return 0;
  return word_at(kernargs, static_cast<std::size_t>(kernel_.hostcall_offset));
}

// Compilers ask for the buffer wherever they cannot prove that nothing calls the host, at -O0 always: having
// one means nothing yet.
bool CaptureRecords::called_host(const std::vector<unsigned char>& kernargs) const {
  const std::uint64_t buffer = hostcall_buffer(kernargs);
  if (buffer == 0) return false;
  HostcallHeader now{};
  return !hostcall_before_ || !read_own_memory(buffer, now.data(), sizeof now) || now != *hostcall_before_;
}

std::vector<unsigned char> CaptureRecords::read_kernargs(const Packet& packet) {
  std::vector<unsigned char> bytes(kernel_.kernarg_bytes);
  if (bytes.empty()) return bytes;
  const auto address = reinterpret_cast<std::uint64_t>(packet.dispatch.kernarg_address);
  if (!read_own_memory(address, bytes.data(), bytes.size()) &&
      api().core.hsa_memory_copy_fn(bytes.data(), packet.dispatch.kernarg_address, bytes.size()) !=
          HSA_STATUS_SUCCESS) {
    throw Refused("the kernel's " + std::to_string(bytes.size()) + " bytes of arguments at " + hex(address) +
                  " cannot be read");
  }
  HostcallHeader header{};
  const std::uint64_t buffer = hostcall_buffer(bytes);
  if (buffer != 0 && read_own_memory(buffer, header.data(), sizeof header)) hostcall_before_ = header;
  return bytes;
}

std::vector<ImageRegion> CaptureRecords::regions(const std::vector<unsigned char>& kernargs) const {
  std::vector<ImageRegion> regions;
  for (Allocation& allocation : process_.allocations.all()) {
    if (!allocation.accessible_to(agent_.handle.handle)) continue;
    ImageRegion region;
    region.source = std::move(allocation);
    regions.push_back(std::move(region));
  }
  for (const LoadedCode& code : loaded_) {
    if (code.load_bytes == 0 || overlaps_any(regions, code.load_base, code.load_base + code.load_bytes))
      continue;
    ImageRegion region;
    region.source.address = code.load_base;
    region.source.bytes = code.load_bytes;
    region.source.kind = RegionKind::code_segment;
    region.source.owner = agent_.handle.handle;
    region.code_object = code.id;
    insert_sorted(regions, std::move(region));
  }
  // Arguments may point to memory that came from none of the calls we follow; the runtime knows it then.
  for (std::size_t offset = 0; offset + 8 <= kernargs.size(); offset += 4) {
    const std::uint64_t word = word_at(kernargs, offset);
    if (word < 0x10000 || word >> 47 != 0 || overlaps_any(regions, word, word + 1)) continue;
    hsa_amd_pointer_info_t info{};
    info.size = sizeof info;
    if (api().amd.hsa_amd_pointer_info_fn == nullptr ||
        api().amd.hsa_amd_pointer_info_fn(reinterpret_cast<const void*>(word), &info, nullptr, nullptr,
                                          nullptr) != HSA_STATUS_SUCCESS ||
        info.type == HSA_EXT_POINTER_TYPE_UNKNOWN || info.type == HSA_EXT_POINTER_TYPE_RESERVED_ADDR ||
        info.sizeInBytes == 0) {
      continue;
    }
    ImageRegion region;
    region.source.address = reinterpret_cast<std::uint64_t>(info.agentBaseAddress);
    region.source.bytes = info.sizeInBytes;
    if (word - region.source.address >= region.source.bytes ||
        overlaps_any(regions, region.source.address, region.source.end())) {
      continue;
    }
    const AgentInfo* owner = process_.agents.find(info.agentOwner);
    const bool on_device = owner != nullptr && owner->gpu;
    if (!on_device && info.hostBaseAddress != nullptr) {
      region.source.host_address = reinterpret_cast<std::uint64_t>(info.hostBaseAddress);
    }
    region.source.kind = info.type == HSA_EXT_POINTER_TYPE_LOCKED ? RegionKind::registered
                         : on_device                              ? RegionKind::device
                                                                  : RegionKind::host;
    region.source.pool_flags = info.global_flags;
    region.source.everyone = true;
    insert_sorted(regions, std::move(region));
  }
  return regions;
}

void CaptureRecords::refuse_pageable(const std::vector<unsigned char>& kernargs) const {
  bool reaches_everything = false;
  if (api().core.hsa_system_get_info_fn(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, &reaches_everything) !=
          HSA_STATUS_SUCCESS ||
      !reaches_everything) {
    return;
  }
  const std::vector<ImageRegion> known = regions(kernargs);
  for (std::size_t offset = 0; offset + 8 <= kernargs.size(); offset += 8) {
    const std::uint64_t word = word_at(kernargs, offset);
    unsigned char byte;
    if (word < 0x10000 || word >> 47 != 0 || overlaps_any(known, word, word + 1)) continue;
    if (!read_own_memory(word, &byte, 1)) continue;
    throw Refused(
        "the argument at byte " + std::to_string(offset) + " points to " + hex(word) +
        ", memory of the process that was not allocated through the runtime (HMM): its extent is not "
        "known, so it cannot be captured; register it, or run with HSA_XNACK=0");
  }
}

std::uint32_t CaptureRecords::record_id(std::uint32_t loaded_id) const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]->id == loaded_id) return static_cast<std::uint32_t>(i + 1);
  }
  return 0;
}

void CaptureRecords::write_code(snapshot::CaptureWriter& writer, const MemoryImage& image) {
  used_.assign(1, kernel_code_);
  for (const ImageRegion* region : image.image()) {
    if (region->code_object == 0 || region->code_object == kernel_code_->id) continue;
    for (const LoadedCode& code : loaded_) {
      if (code.id == region->code_object && code.content_bytes != 0) used_.push_back(&code);
    }
  }
  for (const LoadedCode* code : used_) {
    std::vector<unsigned char> bytes;
    std::string error;
    if (!process_.code.read(code->content_hash, bytes, &error)) throw Refused(error);
    writer.add_code_object(code->content_hash, bytes.data(), bytes.size());
    snapshot::CodeObjectRecord record{};
    record.id = record_id(code->id);
    record.uri_length = length(code->uri);
    record.content_hash = code->content_hash;
    record.content_bytes = code->content_bytes;
    record.load_base = code->load_base;
    record.load_bytes = code->load_bytes;
    record.load_delta = code->load_delta;
    writer.add(record, RecordType::code_object, {code->uri});
    for (const LoadedVariable& variable : code->variables)
      write_variable(writer, record.id, variable.name, variable.address, variable.bytes);
  }
}

void CaptureRecords::write(snapshot::CaptureWriter& writer, const DispatchFacts& facts,
                           const std::vector<unsigned char>& kernargs, const MemoryImage& image) {
  write_process(writer, process_.runtime.text);

  std::uint64_t clock_hz = 0;
  api().core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &clock_hz);
  snapshot::DeviceRecord device{};
  device.index = agent_.index;
  device.compute_units = agent_.compute_units;
  device.wavefront = agent_.wavefront;
  device.lds_bytes = agent_.lds_bytes;
  device.cache_bytes = agent_.cache_bytes;
  device.clock_hz = clock_hz;
  device.simulated = process_.runtime.simulated ? 1 : 0;
  device.isa_length = length(agent_.isa);
  device.name_length = length(agent_.name);
  device.product_length = length(agent_.product);
  writer.add(device, RecordType::device, {agent_.isa, agent_.name, agent_.product});

  write_code(writer, image);

  const double ns_per_tick = clock_hz != 0 ? 1e9 / static_cast<double>(clock_hz) : 1;
  Packet packet;
  std::memcpy(packet.bytes, facts.packet, sizeof packet);
  const std::string demangled = demangle(kernel_.symbol);
  snapshot::DispatchRecord dispatch{};
  std::memcpy(dispatch.packet, facts.packet, sizeof dispatch.packet);
  dispatch.kernel_id = kernel_.id;
  dispatch.nth_of_kernel = facts.nth;
  dispatch.nth_overall = facts.nth_overall;
  dispatch.queue_id = facts.queue_id;
  if (facts.end > facts.start) {
    dispatch.start_ns = static_cast<std::uint64_t>(static_cast<double>(facts.start) * ns_per_tick);
    dispatch.end_ns =
        dispatch.start_ns +
        static_cast<std::uint64_t>(static_cast<double>(facts.end - facts.start) * ns_per_tick + 0.5);
  }
  dispatch.descriptor_address = packet.dispatch.kernel_object;
  dispatch.code_object = record_id(kernel_code_->id);
  if (called_host(kernargs)) dispatch.flags |= snapshot::kNeedsListener;
  const bool multigrid = kernel_.multigrid_offset >= 0 &&
                         word_at(kernargs, static_cast<std::size_t>(kernel_.multigrid_offset)) != 0;
  if (facts.cooperative || multigrid) dispatch.flags |= snapshot::kCooperative;
  dispatch.reachable_bytes = image.reachable_bytes();
  for (const Allocation& allocation : process_.allocations.all()) {
    if (allocation.accessible_to(agent_.handle.handle)) dispatch.allocated_bytes += allocation.bytes;
  }
  dispatch.memory_mode = static_cast<std::uint32_t>(facts.memory);
  dispatch.symbol_length = length(kernel_.symbol);
  dispatch.demangled_length = length(demangled);
  writer.add(dispatch, RecordType::dispatch, {kernel_.symbol, demangled});

  snapshot::KernargRecord kernarg{};
  kernarg.address = reinterpret_cast<std::uint64_t>(packet.dispatch.kernarg_address);
  kernarg.length = kernargs.size();
  writer.add(kernarg, RecordType::kernarg,
             {{reinterpret_cast<const char*>(kernargs.data()), kernargs.size()}});
  write_regions(writer, image, [this](std::uint32_t loaded_id) { return record_id(loaded_id); });
}

}  // namespace kerncap::interpose

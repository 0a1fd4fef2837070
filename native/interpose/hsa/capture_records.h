// What a capture says beside the memory: process, device, dispatch, arguments, code, variables, regions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interpose/common/memory_image.h"
#include "interpose/hsa/queue.h"
#include "live/layout.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose {

struct Process;

struct DispatchFacts {
  std::uint8_t packet[64] = {};
  std::uint64_t nth = 0;
  std::uint64_t nth_overall = 0;
  std::uint64_t queue_id = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool cooperative = false;
  live::MemoryMode memory = live::MemoryMode::reachable;
};

// The first words of a hostcall buffer: where its packets are, the doorbell, and the stacks of free and of
// submitted packets. Each call takes a packet from the one and counts up what it puts back (ROCm device
// libraries, hostcall).
using HostcallHeader = std::array<std::uint64_t, 5>;

class CaptureRecords {
 public:
  // Throws Refused when the kernel's code object is not known.
  CaptureRecords(Process& process, const AgentInfo& agent, const Kernel& kernel, std::uint64_t kernel_object);

  [[nodiscard]] const LoadedCode& kernel_code() const { return *kernel_code_; }

  // The kernel's arguments as they are now, before it runs. Throws Refused when they cannot be read.
  std::vector<unsigned char> read_kernargs(const Packet& packet);

  // Where the device reaches any memory of the process by itself (HMM), an argument may point to memory that
  // nobody gave to the runtime, and whose extent nobody knows. Throws Refused when one does.
  void refuse_pageable(const std::vector<unsigned char>& kernargs) const;

  // Everything that the device may touch: allocations, code segments, and what the arguments point to beyond
  // those.
  std::vector<ImageRegion> regions(const std::vector<unsigned char>& kernargs) const;

  void write(snapshot::CaptureWriter& writer, const DispatchFacts& facts,
             const std::vector<unsigned char>& kernargs, const MemoryImage& image);

 private:
  void write_code(snapshot::CaptureWriter& writer, const MemoryImage& image);
  [[nodiscard]] std::uint32_t record_id(std::uint32_t loaded_id) const;
  // The buffer through which the kernel could call its host; 0: none.
  [[nodiscard]] std::uint64_t hostcall_buffer(const std::vector<unsigned char>& kernargs) const;
  // Whether it did.
  [[nodiscard]] bool called_host(const std::vector<unsigned char>& kernargs) const;

  Process& process_;
  const AgentInfo& agent_;
  const Kernel& kernel_;
  std::vector<LoadedCode> loaded_;  // on this agent
  const LoadedCode* kernel_code_ = nullptr;
  std::optional<HostcallHeader> hostcall_before_;
  std::vector<const LoadedCode*> used_;  // CodeObjectRecord::id is the position, from 1
};

}  // namespace kerncap::interpose

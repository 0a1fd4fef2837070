#include "sim/hsa/fault_report.h"

#include <mutex>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {

using namespace kerncap::abi;  // NOLINT

namespace {

struct LastFault {
  std::mutex mutex;
  std::string text;
  std::uint64_t address = 0;
};

LastFault& last() {
  static auto* fault = new LastFault;  // queue threads may outlive main
  return *fault;
}

}  // namespace

std::string last_fault(std::uint64_t* address) {
  std::lock_guard lock(last().mutex);
  *address = last().address;
  return last().text;
}

hsa_status_t status_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::memory_read:
    case Fault::Kind::memory_write:
    case Fault::Kind::write_to_read_only:
    case Fault::Kind::misaligned_atomic:
      return HSA_STATUS_ERROR_MEMORY_FAULT;
    case Fault::Kind::lds_out_of_range:
      return HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION;
    case Fault::Kind::illegal_instruction:
      return HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::Kind::trap:
    case Fault::Kind::time_limit:
      return HSA_STATUS_ERROR_EXCEPTION;
    case Fault::Kind::bad_dispatch:
      return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
  }
  return HSA_STATUS_ERROR;
}

bool report_fault(Runtime* runtime, Agent* agent, Fault fault) {
  if (fault.source.empty()) fault.source = runtime->loader.source_line(fault.pc);
  {
    std::lock_guard lock(last().mutex);
    last().text = fault.to_string();
    last().address = fault.address;
  }
  complain("%s", fault.to_string().c_str());
  if (status_of(fault.kind) != HSA_STATUS_ERROR_MEMORY_FAULT) return false;
  hsa_amd_event_t event{};
  event.event_type = HSA_AMD_GPU_MEMORY_FAULT_EVENT;
  event.memory_fault.agent = agent->handle();
  event.memory_fault.virtual_address = fault.address;
  event.memory_fault.fault_reason_mask = fault.kind == Fault::Kind::write_to_read_only
                                             ? HSA_AMD_MEMORY_FAULT_READ_ONLY
                                             : HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT;
  return runtime->raise_event(event);
}

}  // namespace kerncap::sim::rt

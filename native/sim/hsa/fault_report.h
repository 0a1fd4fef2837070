// What happens when a dispatch faults: a paragraph on stderr, the memory-fault event, the queue's error
// callback.
#pragma once

#include <string>

#include "abi/hsa.h"
#include "sim/device/gpu.h"
#include "sim/hsa/queue.h"

namespace kerncap::sim::rt {

abi::hsa_status_t status_of(Fault::Kind kind);

// Prints the fault, with its source line where the code object has one, and raises the event. Whether an
// event handler took it.
bool report_fault(Runtime* runtime, Agent* agent, Fault fault);

// What was reported last, as text, and the address it was about; empty when nothing faulted yet.
std::string last_fault(std::uint64_t* address);

}  // namespace kerncap::sim::rt

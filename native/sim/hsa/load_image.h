// From an ELF image to code that runs: segments into memory, relocations, symbols, ranges of instructions.
#pragma once

#include <string>

#include "sim/hsa/loader.h"

namespace kerncap::sim::rt {

class Runtime;

// Whether code for e_flags runs on the device; else why not.
bool is_compatible(const DeviceModel& model, std::uint32_t elf_flags, std::string* why);

// Fills `object`, whose agent, executable and reader are set. On failure: a status, and why in `*error`;
// memory and registrations made so far are in `object`, for the caller to undo.
abi::hsa_status_t load_image(Runtime* runtime, const ElfImage& image, LoadedCodeObject* object,
                             std::string* error);

}  // namespace kerncap::sim::rt

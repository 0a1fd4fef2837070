// Records of a capture that say the same on every device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "interpose/common/memory_image.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose {

// As records hold a string's length.
inline std::uint32_t length(const std::string& s) { return static_cast<std::uint32_t>(s.size()); }

// This process, and `runtime`, the text of the library that it uses.
void write_process(snapshot::CaptureWriter& writer, const std::string& runtime);

void write_variable(snapshot::CaptureWriter& writer, std::uint32_t code_object, const std::string& name,
                    std::uint64_t address, std::uint64_t bytes);

// `record_id`: of ImageRegion::code_object, the id of its record; 0: it has none.
void write_regions(snapshot::CaptureWriter& writer, const MemoryImage& image,
                   const std::function<std::uint32_t(std::uint32_t)>& record_id);

}  // namespace kerncap::interpose

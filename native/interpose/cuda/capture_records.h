// What a capture says beside the memory: process, device, launch, parameters, code, variables, regions.
#pragma once

#include <cstdint>

#include "interpose/cuda/capture.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose::cuda {

class CaptureRecords {
 public:
  explicit CaptureRecords(Capture& capture) : capture_(capture) {}
  void write(snapshot::CaptureWriter& writer);

 private:
  void write_device(snapshot::CaptureWriter& writer);
  void write_dispatch(snapshot::CaptureWriter& writer);
  void write_launch(snapshot::CaptureWriter& writer);
  void write_code(snapshot::CaptureWriter& writer);
  [[nodiscard]] std::uint32_t record_id(std::uint32_t code) const;

  Capture& capture_;
  std::vector<const Code*> used_;  // CodeObjectRecord::id is the position, from 1
};

}  // namespace kerncap::interpose::cuda

// The one live HsaApiTable of the process.
#pragma once

#include "abi/hsa.h"

namespace kerncap::sim::rt {

struct ApiTables {
  abi::HsaApiTable root;
  abi::CoreApiTable core;
  abi::AmdExtTable amd_ext;
  abi::FinalizerExtTable finalizer_ext;
  abi::ImageExtTable image_ext;
  abi::ToolsApiTable tools;
  abi::PcSamplingExtTable pc_sampling_ext;
};

// What every export calls through and tools patch. Holds the implementation's own functions until a tool
// changes it, from before main.
ApiTables& api_tables();

// Forgets all that tools changed.
void reset_api_tables();

}  // namespace kerncap::sim::rt

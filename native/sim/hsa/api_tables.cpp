#include "sim/hsa/api_tables.h"

#include "sim/hsa/impl.h"

namespace kerncap::sim::rt {
namespace {

// Root 3, core 2, amd_ext 2 with step 7, image 2 with step 1: what ROCr announces from 6.4 on.
ApiTables make_tables(ApiTables* self) {
  ApiTables t{};
  t.root.version = {3, sizeof(abi::HsaApiTable), 1, 0};
  t.root.core_ = &self->core;
  t.root.amd_ext_ = &self->amd_ext;
  t.root.finalizer_ext_ = &self->finalizer_ext;
  t.root.image_ext_ = &self->image_ext;
  t.root.tools_ = &self->tools;
  t.root.pc_sampling_ext_ = &self->pc_sampling_ext;
  t.core.version = {2, sizeof(abi::CoreApiTable), 0, 0};
  t.amd_ext.version = {2, sizeof(abi::AmdExtTable), 7, 0};
  t.finalizer_ext.version = {2, sizeof(abi::FinalizerExtTable), 0, 0};
  t.image_ext.version = {2, sizeof(abi::ImageExtTable), 1, 0};
  t.tools.version = {1, sizeof(abi::ToolsApiTable), 0, 0};
  t.pc_sampling_ext.version = {1, sizeof(abi::PcSamplingExtTable), 0, 0};
#define KERNCAP_SIM_CORE(ret, name, params, args) t.core.name##_fn = impl::name;
#define KERNCAP_SIM_AMD(ret, name, params, args) t.amd_ext.name##_fn = impl::name;
#define KERNCAP_SIM_IMAGE(ret, name, params, args) t.image_ext.name##_fn = impl::name;
  KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_SIM_CORE)
  KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_SIM_AMD)
  KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_SIM_IMAGE)
#undef KERNCAP_SIM_CORE
#undef KERNCAP_SIM_AMD
#undef KERNCAP_SIM_IMAGE
  return t;
}

}  // namespace

ApiTables& api_tables() {
  static ApiTables tables = make_tables(&tables);
  return tables;
}

void reset_api_tables() { api_tables() = make_tables(&api_tables()); }

}  // namespace kerncap::sim::rt

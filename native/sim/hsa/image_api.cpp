// Images are not simulated: creating one says so.
#include "sim/hsa/impl.h"

namespace kerncap::sim::rt::impl {

#define KERNCAP_SIM_NO_IMAGE(ret, name, params, args) \
  ret name params { return HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_SIM_NO_IMAGE)

hsa_status_t hsa_amd_image_create(hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor,
                                  const hsa_amd_image_descriptor_t* image_layout, const void* image_data,
                                  hsa_access_permission_t access_permission, hsa_ext_image_t* image) {
  return HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED;
}
#pragma GCC diagnostic pop

}  // namespace kerncap::sim::rt::impl

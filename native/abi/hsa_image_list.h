// The functions of ImageExtTable.
// Each line is X(return type, name, (parameters), (arguments)), in table order: the order is the ABI.
#pragma once

#define KERNCAP_HSA_IMAGE_FUNCTIONS(X)                                                                       \
  X(hsa_status_t, hsa_ext_image_get_capability,                                                              \
    (hsa_agent_t agent, hsa_ext_image_geometry_t geometry, const hsa_ext_image_format_t* image_format,       \
     std::uint32_t* capability_mask),                                                                        \
    (agent, geometry, image_format, capability_mask))                                                        \
  X(hsa_status_t, hsa_ext_image_data_get_info,                                                               \
    (hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor,                                  \
     hsa_access_permission_t access_permission, hsa_ext_image_data_info_t* image_data_info),                 \
    (agent, image_descriptor, access_permission, image_data_info))                                           \
  X(hsa_status_t, hsa_ext_image_create,                                                                      \
    (hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor, const void* image_data,          \
     hsa_access_permission_t access_permission, hsa_ext_image_t* image),                                     \
    (agent, image_descriptor, image_data, access_permission, image))                                         \
  X(hsa_status_t, hsa_ext_image_import,                                                                      \
    (hsa_agent_t agent, const void* src_memory, std::size_t src_row_pitch, std::size_t src_slice_pitch,      \
     hsa_ext_image_t dst_image, const hsa_ext_image_region_t* image_region),                                 \
    (agent, src_memory, src_row_pitch, src_slice_pitch, dst_image, image_region))                            \
  X(hsa_status_t, hsa_ext_image_export,                                                                      \
    (hsa_agent_t agent, hsa_ext_image_t src_image, void* dst_memory, std::size_t dst_row_pitch,              \
     std::size_t dst_slice_pitch, const hsa_ext_image_region_t* image_region),                               \
    (agent, src_image, dst_memory, dst_row_pitch, dst_slice_pitch, image_region))                            \
  X(hsa_status_t, hsa_ext_image_copy,                                                                        \
    (hsa_agent_t agent, hsa_ext_image_t src_image, const hsa_dim3_t* src_offset, hsa_ext_image_t dst_image,  \
     const hsa_dim3_t* dst_offset, const hsa_dim3_t* range),                                                 \
    (agent, src_image, src_offset, dst_image, dst_offset, range))                                            \
  X(hsa_status_t, hsa_ext_image_clear,                                                                       \
    (hsa_agent_t agent, hsa_ext_image_t image, const void* data,                                             \
     const hsa_ext_image_region_t* image_region),                                                            \
    (agent, image, data, image_region))                                                                      \
  X(hsa_status_t, hsa_ext_image_destroy, (hsa_agent_t agent, hsa_ext_image_t image), (agent, image))         \
  X(hsa_status_t, hsa_ext_sampler_create,                                                                    \
    (hsa_agent_t agent, const hsa_ext_sampler_descriptor_t* sampler_descriptor, hsa_ext_sampler_t* sampler), \
    (agent, sampler_descriptor, sampler))                                                                    \
  X(hsa_status_t, hsa_ext_sampler_destroy, (hsa_agent_t agent, hsa_ext_sampler_t sampler), (agent, sampler)) \
  X(hsa_status_t, hsa_ext_image_get_capability_with_layout,                                                  \
    (hsa_agent_t agent, hsa_ext_image_geometry_t geometry, const hsa_ext_image_format_t* image_format,       \
     hsa_ext_image_data_layout_t image_data_layout, std::uint32_t* capability_mask),                         \
    (agent, geometry, image_format, image_data_layout, capability_mask))                                     \
  X(hsa_status_t, hsa_ext_image_data_get_info_with_layout,                                                   \
    (hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor,                                  \
     hsa_access_permission_t access_permission, hsa_ext_image_data_layout_t image_data_layout,               \
     std::size_t image_data_row_pitch, std::size_t image_data_slice_pitch,                                   \
     hsa_ext_image_data_info_t* image_data_info),                                                            \
    (agent, image_descriptor, access_permission, image_data_layout, image_data_row_pitch,                    \
     image_data_slice_pitch, image_data_info))                                                               \
  X(hsa_status_t, hsa_ext_image_create_with_layout,                                                          \
    (hsa_agent_t agent, const hsa_ext_image_descriptor_t* image_descriptor, const void* image_data,          \
     hsa_access_permission_t access_permission, hsa_ext_image_data_layout_t image_data_layout,               \
     std::size_t image_data_row_pitch, std::size_t image_data_slice_pitch, hsa_ext_image_t* image),          \
    (agent, image_descriptor, image_data, access_permission, image_data_layout, image_data_row_pitch,        \
     image_data_slice_pitch, image))                                                                         \
  X(hsa_status_t, hsa_ext_sampler_create_v2,                                                                 \
    (hsa_agent_t agent, const hsa_ext_sampler_descriptor_v2_t* sampler_descriptor,                           \
     hsa_ext_sampler_t* sampler),                                                                            \
    (agent, sampler_descriptor, sampler))

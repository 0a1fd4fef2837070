/* HIP for machines that have no ROCm: the runtime API, and, when clang compiles HIP, the device side. */
#ifndef KERNCAP_HIP_RUNTIME_H
#define KERNCAP_HIP_RUNTIME_H

#include "hip_runtime_api.h"

#if defined(__HIP__)
#include "kerncap_device.h"
#endif

#endif

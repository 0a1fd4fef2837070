// The other half of backend.h: what runs kernels, which needs the memory.
#pragma once

#ifdef KERNCAP_REPLAY_CUDA
#include "replay/cuda/launcher.h"
#include "replay/cuda/module.h"
#else
#include "replay/launcher.h"
#include "replay/module.h"
#endif

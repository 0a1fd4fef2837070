// What a session needs of a device, for the one sort of device that this program is built for: kerncap-replay
// drives HSA, kerncap-replay-cuda NVIDIA's driver. Both have classes of the same names and meanings: Runtime
// (the library, the GPUs), Agent (one of them), Module (loaded code), Launch and Launcher (running a kernel).
// ReplayMemory is one class, of which replay_memory_device.cpp is each's own.
#pragma once

#ifdef KERNCAP_REPLAY_CUDA
#include "replay/cuda/runtime.h"
#else
#include "replay/runtime.h"
#endif

// Where libcupti is on this machine.
#pragma once

#include <string>

namespace kerncap::interpose::cuda {

// Opens libcupti: the one named in KERNCAP_CUPTI, one that the process has loaded, one beside a CUDA library
// that it has loaded (pip's packages), one of a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda*), or one that
// the dynamic linker knows. Null where there is none; `why` then says what was tried.
void* open_cupti(std::string* why);

}  // namespace kerncap::interpose::cuda

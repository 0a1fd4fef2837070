// What the simulated runtime offers beyond HSA (sim/hsa/kerncap_sim.h), found by name: absent on hardware.
#pragma once

#include <dlfcn.h>

#include "sim/hsa/kerncap_sim.h"

namespace kerncap::replay {

class SimApi {
 public:
  SimApi() = default;
  explicit SimApi(void* library)
      : track_writes(find<decltype(track_writes)>(library, "kerncap_sim_track_writes")),
        take_written(find<decltype(take_written)>(library, "kerncap_sim_take_written")),
        last_fault(find<decltype(last_fault)>(library, "kerncap_sim_last_fault")),
        place_next(find<decltype(place_next)>(library, "kerncap_sim_place_next_code_object")),
        schedule(find<decltype(schedule)>(library, "kerncap_sim_schedule")) {}

  [[nodiscard]] bool present() const { return track_writes != nullptr; }

  decltype(&kerncap_sim_track_writes) track_writes = nullptr;
  decltype(&kerncap_sim_take_written) take_written = nullptr;
  decltype(&kerncap_sim_last_fault) last_fault = nullptr;
  decltype(&kerncap_sim_place_next_code_object) place_next = nullptr;
  decltype(&kerncap_sim_schedule) schedule = nullptr;

 private:
  template <typename Function>
  static Function find(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
  }
};

}  // namespace kerncap::replay

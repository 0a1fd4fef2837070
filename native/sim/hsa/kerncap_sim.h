// What the simulated runtime offers beyond HSA to kerncap's own programs, found by dlsym: a program that runs on
// real hardware finds none of it. All functions are thread safe.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct kerncap_sim_range {
  std::uint64_t base;
  std::uint64_t size;
};

// From now on (1), or no longer (0), remember which bytes each dispatch stores to.
void kerncap_sim_track_writes(int enable);

// The bytes of global memory that the dispatch which completed last stored to: sorted and merged. Copies at most
// `capacity` ranges and returns how many there are.
std::size_t kerncap_sim_written(kerncap_sim_range* out, std::size_t capacity);

// What the dispatch that faulted last did, as one paragraph (Fault::to_string), and the address that it touched (0:
// none). Empty if none has faulted. Copies at most `capacity` bytes, NUL included, and returns the length.
std::size_t kerncap_sim_last_fault(char* out, std::size_t capacity, std::uint64_t* address);

// The next code object to be loaded is put so that its lowest segment lies at `base`, if that range is free then;
// otherwise it goes anywhere, as ever. The caller compares LOAD_BASE.
void kerncap_sim_place_next_code_object(std::uint64_t base);

// The order in which later dispatches start their workgroups: 0 is the usual one, any other value another order.
void kerncap_sim_schedule(std::uint64_t seed);

}  // extern "C"

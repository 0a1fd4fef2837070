/* What kerncap's own programs may ask of the simulated runtime beyond HSA. Find the functions by dlsym in
 * libhsa-runtime64.so.1: their presence is what tells the simulator from a real runtime. Plain C. */
#ifndef KERNCAP_SIM_HSA_KERNCAP_SIM_H_
#define KERNCAP_SIM_HSA_KERNCAP_SIM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kerncap_sim_dispatch {
  uint64_t dispatch_id;       /* index of its packet in the hardware queue */
  uint64_t cycles;            /* simulated, of the device's core clock */
  uint64_t wave_instructions; /* executed, summed over waves */
  uint64_t waves;
  uint64_t core_clock_hz; /* what the cycles were divided by to make timestamps */
  uint32_t faulted;       /* 1: the dispatch ended in a fault */
  uint32_t reserved;
};

/* The last kernel dispatch that ended on `queue` (an hsa_queue_t*, intercept queues included).
 * False when there is no such queue or nothing ran on it. */
bool kerncap_sim_last_dispatch(const void* queue, struct kerncap_sim_dispatch* out);

struct kerncap_sim_range {
  uint64_t base;
  uint64_t size; /* bytes */
};

/* From now on, remember which memory each dispatch stores to (slower). */
void kerncap_sim_track_writes(bool enable);

/* The ranges stored to since the last call that took them, merged and sorted. Writes at most `capacity` of
 * them and returns how many there are; they are forgotten when all of them fitted. */
size_t kerncap_sim_take_written(struct kerncap_sim_range* out, size_t capacity);

/* Simulated GPU of `agent_handle` (hsa_agent_t::handle) described as text: name, cost table. Null: no such
 * GPU. The text lives as long as the library. */
const char* kerncap_sim_cost_table(uint64_t agent_handle);

/* For kerncap-replay (found by name, so each may be missing):
 *
 * What the dispatch that faulted last did, as text (Fault::to_string), and the address it touched (0: none).
 * Copies at most `capacity` bytes, NUL included; returns the text's length, 0 if none has faulted. */
size_t kerncap_sim_last_fault(char* out, size_t capacity, uint64_t* address);

/* The next code object to be loaded is put with its lowest segment at `base`, if that range is free then;
 * otherwise it goes anywhere, as ever. The caller compares LOAD_BASE. */
void kerncap_sim_place_next_code_object(uint64_t base);

/* The order in which later dispatches start their workgroups: 0 is the usual one, any other value another. */
void kerncap_sim_schedule(uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif /* KERNCAP_SIM_HSA_KERNCAP_SIM_H_ */

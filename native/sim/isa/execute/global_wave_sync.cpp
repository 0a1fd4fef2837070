// DS_GWS: barriers of a whole grid (CDNA2 ISA document, DS_GWS_INIT and DS_GWS_BARRIER). The semaphores of
// global wave sync are not executed.
#include "sim/device/global_wave_sync.h"

#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// M0[21:16] plus the offset.
unsigned counter_of(const Wave& w, const Inst& i) {
  return ((w.s[kSrcM0] >> 16 & 63u) + static_cast<u32>(i.imm)) & 63u;
}
// The value is that of the first active lane.
u32 value_of(const Wave& w, const Inst& i) {
  return w.v[i.addr].lane[w.exec() == 0 ? 0 : std::countr_zero(w.exec())];
}

void gws_init(Wave& w, const Inst& i) { w.around->wave_sync().init(counter_of(w, i), value_of(w, i)); }

void gws_barrier(Wave& w, const Inst& i) {
  GlobalWaveSync& sync = w.around->wave_sync();
  const unsigned counter = counter_of(w, i);
  if (!w.in_grid_barrier) {
    w.grid_barrier = sync.arrive(counter, value_of(w, i), w.time.now);
    w.in_grid_barrier = true;
  } else {
    // Another look at the same barrier is no instruction of the program.
    w.time.now -= i.cost;
    w.time.busy[static_cast<unsigned>(i.unit)] -= i.cost;
    ++w.budget;
  }
  u64 latest = 0;
  if (sync.complete(counter, w.grid_barrier, &latest)) {
    w.in_grid_barrier = false;
    if (latest > w.time.now) w.time.now = latest;
    return;
  }
  w.pc = &i;
  w.end_slice();
}

}  // namespace

KERNCAP_SIM_FAMILY(global_wave_sync, {"ds_gws_init", gws_init}, {"ds_gws_barrier", gws_barrier})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL

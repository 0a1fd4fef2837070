// Branches, calls, barriers, waits, mode and hardware registers: SOPP and their like in SOP1, SOPK.
#include "sim/device/cost.h"
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

void jump(Wave& w, const Inst& i) {
  if (i.far) [[unlikely]] {
    w.pc = w.around->code_at(w.around->address_of(i) + 4 + static_cast<u64>(static_cast<i64>(i.imm) * 4));
  } else {
    w.pc = &i + i.imm;
  }
}
#define BRANCH(name, condition)       \
  {name, [](Wave& w, const Inst& i) { \
     if (condition)                   \
       jump(w, i);                    \
     else                             \
       (void)i;                       \
   }}

u64 next_address(const Wave& w, const Inst& i) { return w.around->address_of(i) + i.length; }

void nothing(Wave& /*w*/, const Inst& /*i*/) {}

void s_waitcnt(Wave& w, const Inst& i) {
  const auto bits = static_cast<u32>(i.imm);
  w.time.vm_wait((bits & 15u) | (bits >> 14 & 3u) << 4);
  const unsigned lgkm = bits >> 8 & 15u;
  if (lgkm != 15) w.time.lgkm_wait(lgkm);
}

void s_sleep(Wave& w, const Inst& i) {
  w.time.now += 64u * (static_cast<u32>(i.imm) & 0x7Fu);
  w.end_slice();  // others may be what it waits for
}

void s_trap(Wave& w, const Inst& i) {
  // The AMD HSA ABI: 2 is llvm.trap, 3 llvm.debugtrap (a no-op without a debugger).
  if ((i.imm & 0xFF) == 3) return;
  (void)w;
  throw Trouble{Fault::Kind::trap, -1, 0, 0, "s_trap " + std::to_string(i.imm & 0xFF)};
}

// ---- Hardware registers
enum : unsigned {
  kMode = 1,
  kStatus = 2,
  kTrapStatus = 3,
  kHwId = 4,
  kGprAlloc = 5,
  kLdsAlloc = 6,
  kMemBases = 15,
  kXccId = 20
};

u32 hardware_register(const Wave& w, unsigned id) {
  switch (id) {
    case kMode:
      return w.mode;
    case kStatus:
      return w.scc | (w.exec() == 0 ? 1u << 9 : 0) | (w.vcc() == 0 ? 1u << 10 : 0) | 1u << 16;
    case kHwId:
      return static_cast<u32>(w.hw_id);
    case kGprAlloc:
      return (w.vgprs / 8u - 1u) << 8;
    case kLdsAlloc:
      return (w.lds_bytes + 511u) / 512u << 12;
    case kMemBases:
      return static_cast<u32>(kPrivateAperture >> 48) | static_cast<u32>(kSharedAperture >> 48) << 16;
    case kXccId:
      return static_cast<u32>(w.hw_id >> 32) & 15u;
    default:
      return 0;
  }
}

void s_getreg(Wave& w, const Inst& i) {
  const auto bits = static_cast<u32>(i.imm);
  const unsigned offset = bits >> 6 & 31u, size = (bits >> 11 & 31u) + 1;
  const u32 value = hardware_register(w, bits & 63u) >> offset;
  w.s[i.dst] = size == 32 ? value : value & ((1u << size) - 1u);
}

void set_register(Wave& w, const Inst& i, u32 value) {
  const auto bits = static_cast<u32>(i.imm);
  if ((bits & 63u) != kMode) return;  // the others cannot be written by a user's wave, or mean nothing here
  const unsigned offset = bits >> 6 & 31u, size = (bits >> 11 & 31u) + 1;
  const u32 mask = (size == 32 ? ~0u : (1u << size) - 1u) << offset;
  w.mode = (w.mode & ~mask) | (value << offset & mask);
  w.update_special_mode();
}

// ---- VGPR indexing
void set_gpr_index_mode(Wave& w, u32 mode) {
  w.gpr_index_mode = mode & 15u;
  w.s[kSrcM0] = (w.s[kSrcM0] & ~0xF000u) | (mode & 15u) << 12;
  w.update_special_mode();
}
void s_set_gpr_idx_on(Wave& w, const Inst& i) {
  w.s[kSrcM0] = (w.s[kSrcM0] & ~0xFFu) | (read_s32(w, i.src[0]) & 0xFFu);
  set_gpr_index_mode(w, static_cast<u32>(i.imm));
}

}  // namespace

KERNCAP_SIM_FAMILY(
    salu_flow, {"s_branch", jump}, BRANCH("s_cbranch_scc0", w.scc == 0), BRANCH("s_cbranch_scc1", w.scc != 0),
    BRANCH("s_cbranch_vccz", w.vcc() == 0), BRANCH("s_cbranch_vccnz", w.vcc() != 0),
    BRANCH("s_cbranch_execz", w.exec() == 0), BRANCH("s_cbranch_execnz", w.exec() != 0),
    // No debugger is attached.
    {"s_cbranch_cdbgsys", nothing}, {"s_cbranch_cdbguser", nothing}, {"s_cbranch_cdbgsys_or_user", nothing},
    {"s_cbranch_cdbgsys_and_user", nothing},
    {"s_getpc_b64", [](Wave& w, const Inst& i) { w.set_s64(i.dst, next_address(w, i)); }},
    {"s_setpc_b64", [](Wave& w, const Inst& i) { w.pc = w.around->code_at(read_s64(w, i.src[0])); }},
    {"s_swappc_b64",
     [](Wave& w, const Inst& i) {
       const u64 target = read_s64(w, i.src[0]);
       w.set_s64(i.dst, next_address(w, i));
       w.pc = w.around->code_at(target);
     }},
    {"s_call_b64",
     [](Wave& w, const Inst& i) {
       w.set_s64(i.dst, next_address(w, i));
       jump(w, i);
     }},
    {"s_endpgm", [](Wave& w, const Inst&) { w.stop(Wave::State::done); }},
    {"s_endpgm_saved", [](Wave& w, const Inst&) { w.stop(Wave::State::done); }},
    {"s_barrier", [](Wave& w, const Inst&) { w.stop(Wave::State::at_barrier); }}, {"s_waitcnt", s_waitcnt},
    {"s_sleep", s_sleep}, {"s_trap", s_trap}, {"s_nop", nothing}, {"s_setprio", nothing},
    {"s_sendmsg", nothing}, {"s_sendmsghalt", [](Wave& w, const Inst&) { w.stop(Wave::State::done); }},
    {"s_wakeup", nothing}, {"s_icache_inv", nothing}, {"s_incperflevel", nothing},
    {"s_decperflevel", nothing}, {"s_ttracedata", nothing}, {"s_setkill", nothing},
    {"s_sethalt",
     [](Wave& w, const Inst& i) {
       if ((i.imm & 1) != 0) w.stop(Wave::State::done);
     }},
    {"s_getreg_b32", s_getreg},
    {"s_setreg_b32", [](Wave& w, const Inst& i) { set_register(w, i, w.s[i.dst]); }},
    {"s_setreg_imm32_b32", [](Wave& w, const Inst& i) { set_register(w, i, static_cast<u32>(i.imm1)); }},
    {"s_set_gpr_idx_on", s_set_gpr_idx_on},
    {"s_set_gpr_idx_off",
     [](Wave& w, const Inst&) {
       w.gpr_index_mode = 0;
       w.update_special_mode();
     }},
    {"s_set_gpr_idx_mode", [](Wave& w, const Inst& i) { set_gpr_index_mode(w, static_cast<u32>(i.imm)); }},
    {"s_set_gpr_idx_idx",
     [](Wave& w, const Inst& i) { w.s[kSrcM0] = (w.s[kSrcM0] & ~0xFFu) | (read_s32(w, i.src[0]) & 0xFFu); }})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL

// Every family of handlers, one file of execute/ each. A family is added here and nowhere else.
#define KERNCAP_SIM_FAMILIES(X) \
  X(salu)                       \
  X(salu_flow)                  \
  X(smem)                       \
  X(valu_move)                  \
  X(valu_int)                   \
  X(valu_int64)                 \
  X(valu_f32)                   \
  X(valu_mad)                   \
  X(valu_f64)                   \
  X(valu_transcendental)        \
  X(valu_division)              \
  X(valu_compare)               \
  X(global)                     \
  X(lds)                        \
  X(matrix)                     \
  X(dpp)                        \
  X(sdwa)                       \
  X(valu_f16)                   \
  X(valu_i16)                   \
  X(valu_packed)                \
  X(valu_dot)                   \
  X(valu_pack)                  \
  X(atomics)                    \
  X(lds_atomics)                \
  X(scratch)                    \
  X(valu_compare16)             \
  X(buffer)                     \
  X(buffer_format)              \
  X(global_wave_sync)

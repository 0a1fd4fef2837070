// Kernels of the runtime's tests, without any header: only what clang itself provides.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ u32 global_id() {
  const u32 group = __builtin_amdgcn_workgroup_id_x();
  return group * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

__device__ u32 bias = 7;
__device__ u32 table[4] = {10, 20, 30, 40};
__device__ u32* table_end = &table[3];  // needs a relocation
__constant__ u32 scale = 3;
extern __device__ __attribute__((visibility("default"))) u32 outside;  // given by the program

// data[i] += n, for i below n
extern "C" __global__ void add(u32* data, u32 n) {
  u32 i = global_id();
  if (i < n) data[i] += n;
}

// order[slot++] = value: shows in which order dispatches ran
extern "C" __global__ void append(u32* order, u32 value) {
  if (global_id() != 0) return;
  u32 at = order[0];
  order[at + 1] = value;
  order[0] = at + 1;
}

// Uses its module's variables.
extern "C" __global__ void variables(u32* out) {
  if (global_id() != 0) return;
  out[0] = bias * scale;
  out[1] = *table_end;
  bias = 100;
}

// Waits until *flag is not 0, then writes it to *out.
extern "C" __global__ void wait_for_flag(u32* flag, u32* out) {
  if (global_id() != 0) return;
  u32 seen;
  while ((seen = __atomic_load_n(flag, __ATOMIC_RELAXED)) == 0) __builtin_amdgcn_s_sleep(1);
  *out = seen;
}

// Stores where the pointer says, whatever it says.
extern "C" __global__ void store(u32* where, u32 value) { where[global_id()] = value; }

extern "C" __global__ void trap() { __builtin_trap(); }

extern "C" __global__ void endless(u32* flag) {
  while (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0) __builtin_amdgcn_s_sleep(1);
}

// Reads its own dispatch packet.
extern "C" __global__ void own_packet(u32* out) {
  const u32* packet = (const u32*)__builtin_amdgcn_dispatch_ptr();
  if (global_id() == 0) out[0] = packet[3];  // grid size
}

#ifdef WITH_EXTERNAL
extern "C" __global__ void external(u32* out) { out[0] = outside; }
#endif

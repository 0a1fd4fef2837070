// Pointers in memory: tables of weight pointers, structures that hold pointers, top-k gating.
#include "device.h"

extern "C" __global__ void moe_gather(float** W, const float* const* X, float** Y, const int* ids,
                                      const float* gate, int D, int F, int k) {
  int tok = blockIdx.x, e = ids[tok * k + blockIdx.y];
  const float* w = W[e];
  const float* x = X[tok];
  float* y = Y[tok];
  float g = gate[tok * k + blockIdx.y];
  for (int f = threadIdx.x; f < F; f += blockDim.x) {
    float a = 0;
    for (int d = 0; d < D; d++) a += w[(size_t)f * D + d] * x[d];
    atomicAdd(&y[f], a * g);
  }
}

struct Exp {
  half* w;
  half* b;
  int rows;
  int pad;
};

extern "C" __global__ void moe_struct(const Exp* ex, const half* x, half* y, const int* cnt, const int* off,
                                      int D) {
  int e = blockIdx.z;
  Exp p = ex[e];
  int n = cnt[e];
  for (int t = blockIdx.y; t < n; t += gridDim.y) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < p.rows) {
      float a = p.b ? (float)p.b[r] : 0.f;
      for (int d = 0; d < D; d += 2) {
        half2_t u = *(const half2_t*)&p.w[(size_t)r * D + d],
                v = *(const half2_t*)&x[(size_t)(off[e] + t) * D + d];
        a = __builtin_amdgcn_fdot2(u, v, a, false);
      }
      y[(size_t)(off[e] + t) * p.rows + r] = (half)a;
    }
  }
}

extern "C" __global__ void topk_gate(const float* logits, int* ids, float* w, int E, int k) {
  int tok = blockIdx.x;
  int l = __lane_id();
  float v = l < E ? logits[(size_t)tok * E + l] : -1e30f;
  float sum = 0;
  for (int j = 0; j < k; j++) {
    float m = v;
    int id = l;
    for (int s = warpSize / 2; s; s >>= 1) {
      float om = __shfl_xor(m, s);
      int oi = __shfl_i(id, l ^ s);
      if (om > m || (om == m && oi < id)) {
        m = om;
        id = oi;
      }
    }
    if (l == id) v = -1e30f;
    float e = expf(m);
    sum += e;
    if (l == 0) {
      ids[tok * k + j] = id;
      w[tok * k + j] = e;
    }
  }
  if (l < k) w[tok * k + l] /= sum;
}

// How long rocBLAS takes for products of 512 x 512 x 512, in f32 and in f16 with f32 sums: prints "rate NAME
// SECONDS" for each of several calls, after one that loads the kernels.
#include <dlfcn.h>
#include <rocblas/rocblas.h>

#include <chrono>

#include "check.h"

namespace {

constexpr int kSize = 512;

template <typename Function>
Function* function(Function* /*as declared*/, const char* name) {
  static void* const library = dlopen("librocblas.so.4", RTLD_NOW);
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  EXPECT(found != nullptr);
  return reinterpret_cast<Function*>(found);
}
#define ROCBLAS(name) function(static_cast<decltype(name)*>(nullptr), #name)

template <typename In, typename Out>
void measure(rocblas_handle handle, const char* name, rocblas_datatype in, rocblas_datatype out) {
  const std::vector<In> ones(kSize * kSize, In(1.0f));
  In* a = device_array(ones);
  In* b = device_array(ones);
  Out* d = device_array(std::vector<Out>(kSize * kSize));
  const float one = 1, zero = 0;
  for (int run = 0; run < 4; ++run) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT(ROCBLAS(rocblas_gemm_ex)(handle, rocblas_operation_none, rocblas_operation_transpose, kSize, kSize,
                                    kSize, &one, a, in, kSize, b, in, kSize, &zero, d, out, kSize, d, out,
                                    kSize, rocblas_datatype_f32_r, rocblas_gemm_algo_standard, 0,
                                    0) == rocblas_status_success);
    HIP(hipDeviceSynchronize());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (run > 0) std::printf("rate %s %.6f\n", name, took.count());
  }
  EXPECT(static_cast<float>(host_vector(d, 1)[0]) == kSize);
  for (void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(d)}) HIP(hipFree(p));
}

}  // namespace

int main() {
  rocblas_handle handle = nullptr;
  EXPECT(ROCBLAS(rocblas_create_handle)(&handle) == rocblas_status_success);
  measure<float, float>(handle, "sgemm", rocblas_datatype_f32_r, rocblas_datatype_f32_r);
  measure<_Float16, _Float16>(handle, "hgemm", rocblas_datatype_f16_r, rocblas_datatype_f16_r);
  EXPECT(ROCBLAS(rocblas_destroy_handle)(handle) == rocblas_status_success);
  return finish();
}

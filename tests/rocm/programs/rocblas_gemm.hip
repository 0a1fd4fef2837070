// Matrix products by rocBLAS, whose kernels are prebuilt: assembly for the matrix cores, in every type.
// Inputs are small whole numbers, so that each result is exact.
#include <dlfcn.h>
#include <rocblas/rocblas.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "check.h"

namespace {

void* library() {
  static void* const opened = dlopen("librocblas.so.4", RTLD_NOW);
  return opened;
}
template <typename Function>
Function* function(Function* /*as declared*/, const char* name) {
  void* found = library() == nullptr ? nullptr : dlsym(library(), name);
  if (found == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  EXPECT(found != nullptr);
  return reinterpret_cast<Function*>(found);
}
#define ROCBLAS(name) function(static_cast<decltype(name)*>(nullptr), #name)

struct Bf16 {
  std::uint16_t bits;
  explicit Bf16(float value) {
    std::uint32_t all;
    std::memcpy(&all, &value, sizeof all);
    bits = static_cast<std::uint16_t>(all >> 16);
  }
};

// D = A B^T of m x k and n x k in column-major order.
template <typename In, typename Out, typename Compute>
void multiply(rocblas_handle handle, rocblas_datatype in, rocblas_datatype out, rocblas_datatype compute,
              int m, int n, int k) {
  std::vector<int> whole_a(m * k), whole_b(n * k);
  std::vector<In> a, b;
  for (int i = 0; i < m * k; ++i) a.push_back(In(static_cast<float>(whole_a[i] = (i * 7 + i / 11) % 9 - 4)));
  for (int i = 0; i < n * k; ++i) b.push_back(In(static_cast<float>(whole_b[i] = (i * 5 + i / 13) % 9 - 4)));
  In* device_a = device_array(a);
  In* device_b = device_array(b);
  Out* device_d = device_array(std::vector<Out>(m * n));
  const Compute one = 1, zero = 0;
  EXPECT(ROCBLAS(rocblas_gemm_ex)(handle, rocblas_operation_none, rocblas_operation_transpose, m, n, k, &one,
                                  device_a, in, m, device_b, in, n, &zero, device_d, out, m, device_d, out, m,
                                  compute, rocblas_gemm_algo_standard, 0, 0) == rocblas_status_success);
  HIP(hipDeviceSynchronize());
  const std::vector<Out> d = host_vector(device_d, m * n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      int sum = 0;
      for (int l = 0; l < k; ++l) sum += whole_a[l * m + i] * whole_b[l * n + j];
      EXPECT(static_cast<double>(d[j * m + i]) == sum);
    }
  for (void* p : {static_cast<void*>(device_a), static_cast<void*>(device_b), static_cast<void*>(device_d)})
    HIP(hipFree(p));
}

}  // namespace

int main() {
  rocblas_handle handle = nullptr;
  EXPECT(ROCBLAS(rocblas_create_handle)(&handle) == rocblas_status_success);
  constexpr auto f16 = rocblas_datatype_f16_r, f32 = rocblas_datatype_f32_r, f64 = rocblas_datatype_f64_r;
  for (const int size : {36, 128, 300}) {
    multiply<float, float, float>(handle, f32, f32, f32, size, size + 3, 64);
    multiply<double, double, double>(handle, f64, f64, f64, size, size - 3, 64);
    multiply<_Float16, _Float16, float>(handle, f16, f16, f32, size, size, 64);
    multiply<_Float16, float, float>(handle, f16, f32, f32, size - 3, size, 64);
    multiply<Bf16, float, float>(handle, rocblas_datatype_bf16_r, f32, f32, size, size, 64);
    multiply<std::int8_t, int, int>(handle, rocblas_datatype_i8_r, rocblas_datatype_i32_r,
                                    rocblas_datatype_i32_r, size, size, 64);
  }
  EXPECT(ROCBLAS(rocblas_destroy_handle)(handle) == rocblas_status_success);
  return finish();
}

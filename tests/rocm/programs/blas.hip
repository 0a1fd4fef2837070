// rocBLAS's own kernels, Tensile's among them: inputs and results are written as raw files into a folder, for numpy to
// judge.
//   blas FOLDER [NAME]     NAME: one of the operations; default: all
#include <rocblas/rocblas.h>

#include <cstdint>

#include "check.h"

#define BLAS(call)                                                                                \
  do {                                                                                            \
    const rocblas_status result = (call);                                                         \
    if (result != rocblas_status_success) {                                                       \
      std::fprintf(stderr, "%d: %s: %s\n", __LINE__, #call, rocblas_status_to_string(result));    \
      std::exit(2);                                                                               \
    }                                                                                             \
  } while (false)

static std::string folder, only;

static bool wanted(const char* name) { return only.empty() || only == name; }

template <typename T>
void save(const std::string& name, const std::vector<T>& values) {
  std::FILE* file = std::fopen((folder + "/" + name + ".bin").c_str(), "wb");
  EXPECT(file != nullptr && std::fwrite(values.data(), sizeof(T), values.size(), file) == values.size());
  std::fclose(file);
}

// Small multiples of 1/8, exact in every type.
template <typename T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::vector<T> values(count);
  for (T& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<float>(static_cast<int>(seed >> 27) - 16) / 8.0f);
  }
  return values;
}

constexpr int m = 96, n = 80, k = 112, batches = 3;

// Column-major C = alpha A B + beta C.
template <typename T, typename Gemm>
void gemm(rocblas_handle handle, const char* name, Gemm call) {
  if (!wanted(name)) return;
  const std::vector<T> a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2), c = numbers<T>(m * n, 3);
  T *da = device_array(a), *db = device_array(b), *dc = device_array(c);
  const T alpha = static_cast<T>(1.5f), beta = static_cast<T>(-0.5f);
  BLAS(call(handle, rocblas_operation_none, rocblas_operation_none, m, n, k, &alpha, da, m, db, k, &beta, dc, m));
  save(std::string(name) + ".a", a);
  save(std::string(name) + ".b", b);
  save(std::string(name) + ".c", c);
  save(std::string(name) + ".result", host_vector(dc, m * n));
}

static void level1(rocblas_handle handle) {
  constexpr int count = 5000;
  const std::vector<float> x = numbers<float>(count, 4), y = numbers<float>(count, 5);
  float *dx = device_array(x), *dy = device_array(y);
  save("x", x);
  save("y", y);
  if (wanted("dot")) {
    float dot = 0;
    BLAS(rocblas_sdot(handle, count, dx, 1, dy, 1, &dot));
    save("dot.result", std::vector<float>{dot});
  }
  if (wanted("axpy")) {
    const float alpha = 2.5f;
    BLAS(rocblas_saxpy(handle, count, &alpha, dx, 1, dy, 1));
    save("axpy.result", host_vector(dy, count));
  }
}

static void batched(rocblas_handle handle) {
  if (!wanted("batched")) return;
  std::vector<float> all_a, all_b, all_c, results;
  std::vector<float*> pa, pb, pc;
  for (unsigned i = 0; i < batches; ++i) {
    const std::vector<float> a = numbers<float>(k * m, 10 + i), b = numbers<float>(k * n, 20 + i);
    const std::vector<float> c = numbers<float>(m * n, 30 + i);
    pa.push_back(device_array(a));
    pb.push_back(device_array(b));
    pc.push_back(device_array(c));
    all_a.insert(all_a.end(), a.begin(), a.end());
    all_b.insert(all_b.end(), b.begin(), b.end());
    all_c.insert(all_c.end(), c.begin(), c.end());
  }
  float **ta = device_array(pa), **tb = device_array(pb), **tc = device_array(pc);
  const float alpha = 1, beta = 2;
  BLAS(rocblas_sgemm_batched(handle, rocblas_operation_transpose, rocblas_operation_none, m, n, k, &alpha, ta, k, tb, k,
                             &beta, tc, m, batches));
  for (float* c : pc) {
    const std::vector<float> part = host_vector(c, m * n);
    results.insert(results.end(), part.begin(), part.end());
  }
  save("batched.a", all_a);
  save("batched.b", all_b);
  save("batched.c", all_c);
  save("batched.result", results);
}

int main(int count, char** arguments) {
  EXPECT(count >= 2);
  folder = arguments[1];
  if (count > 2) only = arguments[2];
  rocblas_handle handle;
  BLAS(rocblas_create_handle(&handle));
  level1(handle);
  gemm<float>(handle, "sgemm", rocblas_sgemm);
  gemm<double>(handle, "dgemm", rocblas_dgemm);
  // rocblas_half has _Float16's bits and no arithmetic.
  const auto half = [](auto* pointer) { return reinterpret_cast<const rocblas_half*>(pointer); };
  const auto hgemm = [half](rocblas_handle h, rocblas_operation ta, rocblas_operation tb, int rows, int columns, int depth,
                            const _Float16* alpha, const _Float16* a, int lda, const _Float16* b, int ldb,
                            const _Float16* beta, _Float16* c, int ldc) {
    return rocblas_hgemm(h, ta, tb, rows, columns, depth, half(alpha), half(a), lda, half(b), ldb, half(beta),
                         reinterpret_cast<rocblas_half*>(c), ldc);
  };
  gemm<_Float16>(handle, "hgemm", hgemm);
  batched(handle);
  BLAS(rocblas_destroy_handle(handle));
  std::printf("ok\n");
  return 0;
}

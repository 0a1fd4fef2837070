// Copies and fills of every direction and shape, and module variables: HIP's own blit kernels do most of them.
#include <numeric>

#include "check.h"

__constant__ float weights[4];
__device__ int touched[3];

__global__ void weigh(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) touched[1] += 7;
  if (i < n) y[i] = x[i] * weights[i % 4];
}

int main() {
  constexpr int n = 40'000;
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), 1.0f);
  float* in = device_array(x);
  float* out = nullptr;
  HIP(hipMalloc(&out, n * sizeof(float)));

  const float w[4] = {1, 2, 3, 4};
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(weights), w, sizeof w));
  const int start = 5;
  HIP(hipMemcpyToSymbol(HIP_SYMBOL(touched), &start, sizeof start, sizeof(int)));
  weigh<<<(n + 255) / 256, 256>>>(in, out, n);
  launched("weigh");
  HIP(hipGetLastError());
  std::vector<float> y = host_vector(out, n);
  for (int i = 0; i < n; ++i) EXPECT(y[i] == x[i] * w[i % 4]);
  int after[3];
  HIP(hipMemcpyFromSymbol(after, HIP_SYMBOL(touched), sizeof after));
  EXPECT(after[0] == 0 && after[1] == 12 && after[2] == 0);

  // Device to device, at addresses that are no multiple of a word.
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  HIP(hipMemset(out, 0x5a, n * sizeof(float)));
  HIP(hipMemcpy(bytes + 3, reinterpret_cast<unsigned char*>(in) + 1, 1001, hipMemcpyDeviceToDevice));
  std::vector<unsigned char> raw = host_vector(bytes, 2000);
  const auto* source = reinterpret_cast<const unsigned char*>(x.data());
  for (int i = 0; i < 2000; ++i) EXPECT(raw[i] == (i >= 3 && i < 1004 ? source[i - 2] : 0x5a));

  // Fills of one, two and four bytes, with odd lengths.
  HIP(hipMemsetD8(out, 0x11, 99));
  HIP(hipMemsetD16(bytes + 100, 0x2233, 51));
  HIP(hipMemsetD32(bytes + 204, 0x44556677, 33));
  raw = host_vector(bytes, 336);
  for (int i = 0; i < 99; ++i) EXPECT(raw[i] == 0x11);
  for (int i = 0; i < 102; ++i) EXPECT(raw[100 + i] == (i % 2 ? 0x22 : 0x33));
  for (int i = 0; i < 33; ++i) EXPECT(raw[204 + 4 * i] == 0x77 && raw[207 + 4 * i] == 0x44);

  // Rows with a pitch, both ways, and a fill of part of each row.
  constexpr std::size_t width = 100, height = 37;
  std::size_t pitch = 0;
  void* image = nullptr;
  HIP(hipMallocPitch(&image, &pitch, width, height));
  std::vector<unsigned char> picture(width * height), back(width * height, 0xee);
  for (std::size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<unsigned char>(i * 7);
  HIP(hipMemcpy2D(image, pitch, picture.data(), width, width, height, hipMemcpyHostToDevice));
  HIP(hipMemset2D(static_cast<char*>(image) + 10, pitch, 0x99, 20, height));
  HIP(hipMemcpy2D(back.data(), width, image, pitch, width, height, hipMemcpyDeviceToHost));
  for (std::size_t row = 0; row < height; ++row)
    for (std::size_t column = 0; column < width; ++column) {
      const bool filled = column >= 10 && column < 30;
      EXPECT(back[row * width + column] == (filled ? 0x99 : picture[row * width + column]));
    }

  // More than a staging buffer, to pageable memory and back, with work between on a stream.
  constexpr std::size_t large = 24 << 20;
  std::vector<unsigned> many(large / 4), returned(large / 4);
  std::iota(many.begin(), many.end(), 0x1000u);
  void *first = nullptr, *second = nullptr;
  HIP(hipMalloc(&first, large));
  HIP(hipMalloc(&second, large));
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  HIP(hipMemcpyAsync(first, many.data(), large, hipMemcpyHostToDevice, stream));
  HIP(hipMemcpyAsync(second, first, large, hipMemcpyDeviceToDevice, stream));
  HIP(hipMemcpyAsync(returned.data(), second, large, hipMemcpyDeviceToHost, stream));
  HIP(hipStreamSynchronize(stream));
  EXPECT(many == returned);
  HIP(hipStreamDestroy(stream));
  for (void* p : {static_cast<void*>(in), static_cast<void*>(out), image, first, second}) HIP(hipFree(p));
  return finish();
}

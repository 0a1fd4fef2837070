// A launch over many numbers of one type, of which a wrong kernel gets each one wrong: everywhere KERNEL.
#include <hip/hip_runtime_api.h>

#include "../programs/program.h"

// The i-th of `values`, over and over, is the i-th input.
template <typename T>
void run(hipFunction_t kernel, unsigned long long count, const std::vector<T>& values) {
  std::vector<T> numbers(count);
  for (unsigned long long i = 0; i < count; ++i) numbers[i] = values[i * 2654435761u % values.size()];
  T* const in = device_copy(numbers);
  T* const out = device_copy(std::vector<T>(count));
  launch(kernel, static_cast<unsigned>((count + 255) / 256), 256, in, out, count);
  CHECK(hipDeviceSynchronize());
}

int main(int argc, char** argv) {
  const auto count = static_cast<unsigned long long>(option(argc, argv, "--thousands", 10000)) * 1000;
  const std::string name = argc > 1 ? argv[1] : "scale_f32";
  hipFunction_t kernel = find(load("everywhere"), name.c_str());
  std::vector<double> values;
  std::vector<unsigned short> halves;
  for (unsigned i = 64; i <= 100000; ++i) values.push_back(i / 64.0);
  for (unsigned i = 0; i < 1024; ++i) halves.push_back(static_cast<unsigned short>(0x3C00 | i));  // 1 to 2
  if (name == "scale_f64") run(kernel, count, values);
  if (name == "scale_f32") run(kernel, count, std::vector<float>(values.begin(), values.end()));
  if (name == "scale_i64") run(kernel, count, std::vector<long long>(values.begin(), values.end()));
  if (name == "scale_f16") run(kernel, count, halves);
}

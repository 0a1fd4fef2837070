// The decoder on the GPU.
#pragma once

#include <string>
#include <vector>

#include "gpu.h"
#include "model.h"

class Decoder {
 public:
  // `kernels` is the folder of the code objects. `positions` is how many tokens the cache holds.
  Decoder(const Model& model, const std::string& kernels, int positions);

  void start(int token);
  // Decodes the token chosen last, at the next position; the next token and, with `logits`, what it was
  // chosen from, and with `experts`, the experts that each layer used (used_experts a layer; 0 in dense
  // ones).
  int step(std::vector<float>* logits, std::vector<int>* experts = nullptr);

 private:
  struct DeviceMatrix {
    Buffer<block_q8_0> blocks;
    int rows = 0;
    int blocks_per_row = 0;
  };
  struct DeviceLayer {
    Buffer<float> attention_norm, ff_norm, keys, values;
    DeviceMatrix q, k, v, o, up, gate, down, router;
    std::vector<DeviceMatrix> expert_up_gate, expert_down;
    Buffer<const block_q8_0*> up_gate_table, down_table;
  };

  static DeviceMatrix upload(const Matrix& matrix);
  void norm(const float* x, const Buffer<float>& weight);
  void quantize(const float* x, int n);
  void multiply(const DeviceMatrix& x, float* dst, const DeviceMatrix* gate = nullptr,
                float* dst_gate = nullptr);
  void attend(const DeviceLayer& layer);
  void feed_forward(const DeviceLayer& layer);
  void mixture(const DeviceLayer& layer, int* ids);

  Config config_;
  Module matvec_, norm_module_, quantize_module_, attention_module_, experts_module_, activation_module_;
  Kernel mul_mat_vec_q_, rms_norm_, add_, add_experts_, quantize_q8_1_, get_row_, rope_, attention_,
      choose_experts_, expert_mat_vec_q_, silu_mul_, argmax_;

  DeviceMatrix embedding_, output_;
  Buffer<float> output_norm_;
  std::vector<DeviceLayer> layers_;
  Buffer<float> x_, normed_, q_, attended_, up_, gate_, hidden_, projected_, weights_, logits_;
  Buffer<block_q8_1> quantized_;
  Buffer<int> token_, ids_;
  int position_ = 0;
};

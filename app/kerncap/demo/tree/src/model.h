// The model: its sizes, and weights that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quants.h"

struct Config {
  int layers = 6;
  int embd = 512;
  int heads = 8;
  int kv_heads = 4;
  int head_size = 64;
  int ff = 1024;    // of dense layers
  int experts = 8;  // of every second layer
  int used_experts = 2;
  int expert_ff = 512;
  int vocab = 1024;
  float eps = 1e-5f;
  float rope_theta = 10000.0f;

  int kv_size() const { return kv_heads * head_size; }
  bool is_moe(int layer) const { return layer % 2 == 1; }
};

struct Matrix {
  int rows = 0;
  int cols = 0;  // a multiple of QK
  std::vector<block_q8_0> blocks;

  int blocks_per_row() const { return cols / QK; }
  const block_q8_0* row(int r) const {
    return blocks.data() + static_cast<std::size_t>(r) * blocks_per_row();
  }
};

struct Layer {
  std::vector<float> attention_norm, ff_norm;
  Matrix q, k, v, o;
  Matrix up, gate, down;               // dense
  Matrix router;                       // mixture of experts
  std::vector<Matrix> expert_up_gate;  // up's rows, then gate's
  std::vector<Matrix> expert_down;
};

struct Model {
  Config config;
  Matrix embedding, output;
  std::vector<float> output_norm;
  std::vector<Layer> layers;
};

Model make_model(const Config& config, std::uint64_t seed);

float half_bits_to_float(std::uint16_t bits);
std::uint16_t float_to_half_bits(float value);

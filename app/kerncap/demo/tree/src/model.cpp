#include "model.h"

#include <cmath>
#include <cstring>

namespace {

// splitmix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  float uniform() { return static_cast<float>(next() >> 40) / static_cast<float>(1 << 24); }

 private:
  std::uint64_t state_;
};

// Products with activations of variance 1 have a variance near 1.
Matrix make_matrix(Random& random, int rows, int cols) {
  Matrix m{rows, cols, {}};
  m.blocks.resize(static_cast<std::size_t>(rows) * m.blocks_per_row());
  const float scale = 1.0f / (73.0f * std::sqrt(static_cast<float>(cols)));
  for (block_q8_0& block : m.blocks) {
    block.d = float_to_half_bits(scale * (0.75f + 0.5f * random.uniform()));
    for (int i = 0; i < QK; i += 8) {
      const std::uint64_t bits = random.next();
      for (int j = 0; j < 8; ++j) {
        const int value = static_cast<int>(bits >> (8 * j) & 0xff) - 128;
        block.qs[i + j] = static_cast<std::int8_t>(value == -128 ? 0 : value);
      }
    }
  }
  return m;
}

std::vector<float> make_norm(Random& random, int n) {
  std::vector<float> weights(static_cast<std::size_t>(n));
  for (float& w : weights) w = 0.8f + 0.4f * random.uniform();
  return weights;
}

}  // namespace

float half_bits_to_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float value;
  if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else {
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

// Rounds to the nearest, ties to even, as the device does.
std::uint16_t float_to_half_bits(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float a = std::fabs(value);
  if (std::isnan(a)) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (a >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(a, &exponent);                                // a = m * 2^exponent, m in [0.5, 1)
  const int ulp = (exponent < -13 ? -13 : exponent) - 11;  // exponent of the last bit
  const float units = std::nearbyint(std::ldexp(a, -ulp));
  const float rounded = std::ldexp(units, ulp);
  if (rounded < std::ldexp(1.0f, -14)) return static_cast<std::uint16_t>(sign | static_cast<int>(units));
  std::frexp(rounded, &exponent);
  const int fraction = static_cast<int>(std::ldexp(rounded, 11 - exponent)) - 1024;
  return static_cast<std::uint16_t>(sign | (exponent + 14) << 10 | fraction);
}

Model make_model(const Config& config, std::uint64_t seed) {
  Random random(seed);
  Model model;
  model.config = config;
  model.embedding = make_matrix(random, config.vocab, config.embd);
  // Embeddings are looked up, not multiplied: their values should have a variance near 1 themselves.
  const float grow = std::sqrt(static_cast<float>(config.embd));
  for (block_q8_0& block : model.embedding.blocks) {
    block.d = float_to_half_bits(half_bits_to_float(block.d) * grow);
  }
  for (int i = 0; i < config.layers; ++i) {
    Layer layer;
    layer.attention_norm = make_norm(random, config.embd);
    layer.ff_norm = make_norm(random, config.embd);
    layer.q = make_matrix(random, config.heads * config.head_size, config.embd);
    layer.k = make_matrix(random, config.kv_size(), config.embd);
    layer.v = make_matrix(random, config.kv_size(), config.embd);
    layer.o = make_matrix(random, config.embd, config.heads * config.head_size);
    if (config.is_moe(i)) {
      layer.router = make_matrix(random, config.experts, config.embd);
      for (int e = 0; e < config.experts; ++e) {
        layer.expert_up_gate.push_back(make_matrix(random, 2 * config.expert_ff, config.embd));
        layer.expert_down.push_back(make_matrix(random, config.embd, config.expert_ff));
      }
    } else {
      layer.up = make_matrix(random, config.ff, config.embd);
      layer.gate = make_matrix(random, config.ff, config.embd);
      layer.down = make_matrix(random, config.embd, config.ff);
    }
    model.layers.push_back(std::move(layer));
  }
  model.output_norm = make_norm(random, config.embd);
  model.output = make_matrix(random, config.vocab, config.embd);
  return model;
}

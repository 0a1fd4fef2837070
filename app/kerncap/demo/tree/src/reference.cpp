#include "reference.h"

#include <algorithm>
#include <cmath>

namespace {

using Values = std::vector<float>;

void quantized(const Values& x, std::vector<float>& scales, std::vector<std::int8_t>& qs) {
  scales.resize(x.size() / QK);
  qs.resize(x.size());
  for (std::size_t b = 0; b < scales.size(); ++b) {
    float highest = 0.0f;
    for (int i = 0; i < QK; ++i) highest = std::max(highest, std::fabs(x[b * QK + i]));
    const float d = highest / 127.0f;
    scales[b] = half_bits_to_float(float_to_half_bits(d));
    for (int i = 0; i < QK; ++i) {
      qs[b * QK + i] = d == 0.0f ? 0 : static_cast<std::int8_t>(std::round(x[b * QK + i] / d));
    }
  }
}

Values multiply(const Matrix& m, const Values& x) {
  std::vector<float> scales;
  std::vector<std::int8_t> qs;
  quantized(x, scales, qs);
  Values result(static_cast<std::size_t>(m.rows));
  for (int r = 0; r < m.rows; ++r) {
    const block_q8_0* row = m.row(r);
    float sum = 0.0f;
    for (int b = 0; b < m.blocks_per_row(); ++b) {
      int dot = 0;
      for (int i = 0; i < QK; ++i) dot += row[b].qs[i] * qs[static_cast<std::size_t>(b) * QK + i];
      sum += half_bits_to_float(row[b].d) * scales[b] * static_cast<float>(dot);
    }
    result[r] = sum;
  }
  return result;
}

Values normed(const Values& x, const Values& weight, float eps) {
  float sum = 0.0f;
  for (float v : x) sum += v * v;
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(x.size()) + eps);
  Values result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) result[i] = x[i] * scale * weight[i];
  return result;
}

void rotate(float* x, int heads, int head_size, int position, float theta) {
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < head_size / 2; ++i) {
      const float angle =
          static_cast<float>(position) *
          std::exp(-2.0f * static_cast<float>(i) / static_cast<float>(head_size) * std::log(theta));
      float& a = x[h * head_size + i];
      float& b = x[h * head_size + i + head_size / 2];
      const float c = std::cos(angle), s = std::sin(angle), old = a;
      a = old * c - b * s;
      b = old * s + b * c;
    }
  }
}

float silu(float v) { return v / (1.0f + std::exp(-v)); }

}  // namespace

Reference::Reference(const Model& model)
    : model_(model), keys_(model.layers.size()), values_(model.layers.size()) {}

void Reference::feed_forward(const Layer& layer, const Values& input, Values& x) const {
  Values up = multiply(layer.up, input);
  const Values gate = multiply(layer.gate, input);
  for (std::size_t i = 0; i < up.size(); ++i) up[i] *= silu(gate[i]);
  const Values down = multiply(layer.down, up);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += down[i];
}

void Reference::mixture(const Layer& layer, const Values& input, const int* experts, Values& x) {
  const Config& c = model_.config;
  Values logits = multiply(layer.router, input);
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<int> ids;
  Values weights;
  float total = 0.0f;
  for (int slot = 0; slot < c.used_experts; ++slot) {
    auto best = std::max_element(logits.begin(), logits.end());
    const int used = experts[slot];
    const bool follow = used >= 0 && used < c.experts && logits[used] >= *best - kNearlyEqual;
    if (follow) {
      best = logits.begin() + used;
    } else {
      ++wrong_choices_;
    }
    ids.push_back(static_cast<int>(best - logits.begin()));
    weights.push_back(std::exp(*best - highest));
    total += weights.back();
    *best = -INFINITY;
  }
  for (int slot = 0; slot < c.used_experts; ++slot) {
    const Values both = multiply(layer.expert_up_gate[ids[slot]], input);
    Values hidden(static_cast<std::size_t>(c.expert_ff));
    for (int i = 0; i < c.expert_ff; ++i) hidden[i] = both[i] * silu(both[i + c.expert_ff]);
    const Values down = multiply(layer.expert_down[ids[slot]], hidden);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += weights[slot] / total * down[i];
  }
}

std::vector<float> Reference::step(int token, const std::vector<int>& experts) {
  const Config& c = model_.config;
  Values x(static_cast<std::size_t>(c.embd));
  for (int i = 0; i < c.embd; ++i) {
    const block_q8_0& block = model_.embedding.row(token)[i / QK];
    x[i] = half_bits_to_float(block.d) * block.qs[i % QK];
  }
  for (int l = 0; l < c.layers; ++l) {
    const Layer& layer = model_.layers[l];
    const Values input = normed(x, layer.attention_norm, c.eps);
    Values k = multiply(layer.k, input);
    const Values v = multiply(layer.v, input);
    Values q = multiply(layer.q, input);
    rotate(q.data(), c.heads, c.head_size, position_, c.rope_theta);
    rotate(k.data(), c.kv_heads, c.head_size, position_, c.rope_theta);
    keys_[l].insert(keys_[l].end(), k.begin(), k.end());
    values_[l].insert(values_[l].end(), v.begin(), v.end());

    Values attended(q.size());
    for (int h = 0; h < c.heads; ++h) {
      const int at = h / (c.heads / c.kv_heads) * c.head_size;
      Values scores(static_cast<std::size_t>(position_) + 1);
      for (int p = 0; p <= position_; ++p) {
        float score = 0.0f;
        for (int i = 0; i < c.head_size; ++i)
          score += q[h * c.head_size + i] * keys_[l][p * c.kv_size() + at + i];
        scores[p] = score / std::sqrt(static_cast<float>(c.head_size));
      }
      const float highest = *std::max_element(scores.begin(), scores.end());
      float total = 0.0f;
      for (int p = 0; p <= position_; ++p) {
        const float weight = std::exp(scores[p] - highest);
        total += weight;
        for (int i = 0; i < c.head_size; ++i)
          attended[h * c.head_size + i] += weight * values_[l][p * c.kv_size() + at + i];
      }
      for (int i = 0; i < c.head_size; ++i) attended[h * c.head_size + i] /= total;
    }
    const Values projected = multiply(layer.o, attended);
    for (int i = 0; i < c.embd; ++i) x[i] += projected[i];

    const Values ff_input = normed(x, layer.ff_norm, c.eps);
    if (c.is_moe(l)) {
      mixture(layer, ff_input, experts.data() + l * c.used_experts, x);
    } else {
      feed_forward(layer, ff_input, x);
    }
  }
  ++position_;
  return multiply(model_.output, normed(x, model_.output_norm, c.eps));
}

#include "decoder.h"

#include <algorithm>

namespace {

constexpr int kBlock = 256;
constexpr int kRowsPerBlock = 8;  // 64 lanes, 8 a row

unsigned blocks(int n, int per_block) { return static_cast<unsigned>((n + per_block - 1) / per_block); }

}  // namespace

Decoder::Decoder(const Model& model, const std::string& kernels, int positions)
    : config_(model.config),
      matvec_(kernels + "/mul_mat_vec_q.hsaco"),
      norm_module_(kernels + "/norm.hsaco"),
      quantize_module_(kernels + "/quantize.hsaco"),
      attention_module_(kernels + "/attention.hsaco"),
      experts_module_(kernels + "/experts.hsaco"),
      activation_module_(kernels + "/activation.hsaco"),
      mul_mat_vec_q_(matvec_, "mul_mat_vec_q"),
      rms_norm_(norm_module_, "rms_norm"),
      add_(norm_module_, "add"),
      add_experts_(norm_module_, "add_experts"),
      quantize_q8_1_(quantize_module_, "quantize_q8_1"),
      get_row_(quantize_module_, "get_row"),
      rope_(attention_module_, "rope"),
      attention_(attention_module_, "attention"),
      choose_experts_(experts_module_, "choose_experts"),
      expert_mat_vec_q_(experts_module_, "expert_mat_vec_q"),
      silu_mul_(activation_module_, "silu_mul"),
      argmax_(activation_module_, "argmax"),
      embedding_(upload(model.embedding)),
      output_(upload(model.output)),
      output_norm_(model.output_norm) {
  const Config& c = config_;
  const auto count = [](int n) { return static_cast<std::size_t>(n); };
  for (int i = 0; i < c.layers; ++i) {
    const Layer& from = model.layers[count(i)];
    DeviceLayer layer;
    layer.attention_norm = Buffer<float>(from.attention_norm);
    layer.ff_norm = Buffer<float>(from.ff_norm);
    layer.keys = Buffer<float>(count(positions * c.kv_size()));
    layer.values = Buffer<float>(count(positions * c.kv_size()));
    layer.q = upload(from.q);
    layer.k = upload(from.k);
    layer.v = upload(from.v);
    layer.o = upload(from.o);
    if (c.is_moe(i)) {
      layer.router = upload(from.router);
      std::vector<const block_q8_0*> up_gate, down;
      for (int e = 0; e < c.experts; ++e) {
        layer.expert_up_gate.push_back(upload(from.expert_up_gate[count(e)]));
        layer.expert_down.push_back(upload(from.expert_down[count(e)]));
        up_gate.push_back(layer.expert_up_gate.back().blocks.data());
        down.push_back(layer.expert_down.back().blocks.data());
      }
      layer.up_gate_table = Buffer<const block_q8_0*>(up_gate);
      layer.down_table = Buffer<const block_q8_0*>(down);
    } else {
      layer.up = upload(from.up);
      layer.gate = upload(from.gate);
      layer.down = upload(from.down);
    }
    layers_.push_back(std::move(layer));
  }
  const int widest = std::max({c.embd, c.heads * c.head_size, c.ff, 2 * c.used_experts * c.expert_ff});
  x_ = Buffer<float>(count(c.embd));
  normed_ = Buffer<float>(count(c.embd));
  q_ = Buffer<float>(count(c.heads * c.head_size));
  attended_ = Buffer<float>(count(c.heads * c.head_size));
  up_ = Buffer<float>(count(widest));
  gate_ = Buffer<float>(count(widest));
  hidden_ = Buffer<float>(count(widest));
  projected_ = Buffer<float>(count(c.used_experts * c.embd));
  weights_ = Buffer<float>(count(c.used_experts));
  logits_ = Buffer<float>(count(c.vocab));
  quantized_ = Buffer<block_q8_1>(count(widest / QK));
  token_ = Buffer<int>(1);
  ids_ = Buffer<int>(std::vector<int>(count(c.layers * c.used_experts)));
}

Decoder::DeviceMatrix Decoder::upload(const Matrix& matrix) {
  return {Buffer<block_q8_0>(matrix.blocks), matrix.rows, matrix.blocks_per_row()};
}

void Decoder::norm(const float* x, const Buffer<float>& weight) {
  rms_norm_({1}, kBlock, 0, x, static_cast<const float*>(weight.data()), normed_.data(), config_.embd,
            config_.eps);
}

void Decoder::quantize(const float* x, int n) {
  quantize_q8_1_({blocks(n, kBlock)}, kBlock, 0, x, quantized_.data(), n);
}

// Of the quantised activations.
void Decoder::multiply(const DeviceMatrix& x, float* dst, const DeviceMatrix* gate, float* dst_gate) {
  const block_q8_0* second = gate == nullptr ? nullptr : gate->blocks.data();
  mul_mat_vec_q_({blocks(x.rows, kRowsPerBlock)}, 64, 0, static_cast<const block_q8_0*>(x.blocks.data()),
                 second, static_cast<const block_q8_1*>(quantized_.data()), dst, dst_gate, x.rows,
                 x.blocks_per_row);
}

void Decoder::attend(const DeviceLayer& layer) {
  const Config& c = config_;
  norm(x_.data(), layer.attention_norm);
  quantize(normed_.data(), c.embd);
  float* key = layer.keys.data() + position_ * c.kv_size();
  float* value = layer.values.data() + position_ * c.kv_size();
  multiply(layer.k, key, &layer.v, value);
  multiply(layer.q, q_.data());
  rope_({static_cast<unsigned>(c.heads)}, 64, 0, q_.data(), position_, c.head_size, c.rope_theta);
  rope_({static_cast<unsigned>(c.kv_heads)}, 64, 0, key, position_, c.head_size, c.rope_theta);
  const unsigned scores = static_cast<unsigned>((position_ + 1) * sizeof(float));
  attention_({static_cast<unsigned>(c.heads)}, static_cast<unsigned>(c.head_size), scores,
             static_cast<const float*>(q_.data()), static_cast<const float*>(layer.keys.data()),
             static_cast<const float*>(layer.values.data()), attended_.data(), position_ + 1, c.kv_heads,
             c.heads / c.kv_heads);
  quantize(attended_.data(), c.heads * c.head_size);
  multiply(layer.o, projected_.data());
  add_({blocks(c.embd, kBlock)}, kBlock, 0, x_.data(), static_cast<const float*>(projected_.data()), c.embd);
}

void Decoder::feed_forward(const DeviceLayer& layer) {
  const Config& c = config_;
  multiply(layer.up, up_.data(), &layer.gate, gate_.data());
  silu_mul_({blocks(c.ff, kBlock)}, kBlock, 0, static_cast<const float*>(up_.data()),
            static_cast<const float*>(gate_.data()), hidden_.data(), c.ff, c.ff);
  quantize(hidden_.data(), c.ff);
  multiply(layer.down, projected_.data());
  add_({blocks(c.embd, kBlock)}, kBlock, 0, x_.data(), static_cast<const float*>(projected_.data()), c.embd);
}

// The experts that are used go to `ids`.
void Decoder::mixture(const DeviceLayer& layer, int* ids) {
  const Config& c = config_;
  const auto used = static_cast<unsigned>(c.used_experts);
  multiply(layer.router, up_.data());
  choose_experts_({1}, 64, 0, static_cast<const float*>(up_.data()), ids, weights_.data(), c.experts,
                  c.used_experts);
  const block_q8_0* const* up_gate = layer.up_gate_table.data();
  const block_q8_0* const* down = layer.down_table.data();
  const int* chosen = ids;
  const block_q8_1* input = quantized_.data();
  expert_mat_vec_q_({blocks(2 * c.expert_ff, kRowsPerBlock), used}, 64, 0, up_gate, chosen, input, up_.data(),
                    2 * c.expert_ff, c.embd / QK, 0);
  const float* up = up_.data();
  silu_mul_({blocks(c.expert_ff, kBlock), used}, kBlock, 0, up, up + c.expert_ff, hidden_.data(), c.expert_ff,
            2 * c.expert_ff);
  quantize(hidden_.data(), c.used_experts * c.expert_ff);
  expert_mat_vec_q_({blocks(c.embd, kRowsPerBlock), used}, 64, 0, down, chosen, input, projected_.data(),
                    c.embd, c.expert_ff / QK, c.expert_ff / QK);
  add_experts_({blocks(c.embd, kBlock)}, kBlock, 0, x_.data(), static_cast<const float*>(projected_.data()),
               static_cast<const float*>(weights_.data()), c.embd, c.used_experts);
}

void Decoder::start(int token) {
  HIP_CHECK(hipMemcpy(token_.data(), &token, sizeof(token), hipMemcpyHostToDevice));
}

int Decoder::step(std::vector<float>* logits, std::vector<int>* experts) {
  const Config& c = config_;
  get_row_({blocks(c.embd, kBlock)}, kBlock, 0, static_cast<const block_q8_0*>(embedding_.blocks.data()),
           static_cast<const int*>(token_.data()), x_.data(), c.embd);
  for (int i = 0; i < c.layers; ++i) {
    const DeviceLayer& layer = layers_[static_cast<std::size_t>(i)];
    attend(layer);
    norm(x_.data(), layer.ff_norm);
    quantize(normed_.data(), c.embd);
    if (c.is_moe(i)) {
      mixture(layer, ids_.data() + i * c.used_experts);
    } else {
      feed_forward(layer);
    }
  }
  norm(x_.data(), output_norm_);
  quantize(normed_.data(), c.embd);
  multiply(output_, logits_.data());
  argmax_({1}, 64, 0, static_cast<const float*>(logits_.data()), token_.data(), c.vocab);
  ++position_;
  if (logits != nullptr) *logits = logits_.read();
  if (experts != nullptr) *experts = ids_.read();
  return token_.read()[0];
}

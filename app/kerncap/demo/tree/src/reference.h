// The same decoder on the host, one token at a time, to check the device's results.
#pragma once

#include <vector>

#include "model.h"

class Reference {
 public:
  explicit Reference(const Model& model);
  // Logits after `token` at the next position. Router logits that are nearly equal may come out in either
  // order on the device, which would change all that follows: the experts that it used (Decoder::step) are
  // followed where their router logits are within kNearlyEqual of those that the host would choose; others
  // are counted in wrong_choices().
  std::vector<float> step(int token, const std::vector<int>& experts);
  int wrong_choices() const { return wrong_choices_; }

  static constexpr float kNearlyEqual = 0.1f;

 private:
  void feed_forward(const Layer& layer, const std::vector<float>& normed, std::vector<float>& x) const;
  void mixture(const Layer& layer, const std::vector<float>& normed, const int* experts,
               std::vector<float>& x);

  const Model& model_;
  int position_ = 0;
  int wrong_choices_ = 0;
  std::vector<std::vector<float>> keys_, values_;  // by layer
};

// The same decoder on the host, one token at a time, to check the device's results.
#pragma once

#include <vector>

#include "model.h"

class Reference {
 public:
  explicit Reference(const Model& model);
  // Logits after `token` at the next position.
  std::vector<float> step(int token);

 private:
  void feed_forward(const Layer& layer, const std::vector<float>& normed, std::vector<float>& x) const;
  void mixture(const Layer& layer, const std::vector<float>& normed, std::vector<float>& x) const;

  const Model& model_;
  int position_ = 0;
  std::vector<std::vector<float>> keys_, values_;  // by layer
};

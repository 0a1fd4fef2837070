#pragma once

struct Task {
  const float* in;
  float* out;
  int n;
};

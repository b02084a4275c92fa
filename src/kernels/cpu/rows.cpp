#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/dot.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kPieceElements = 16384;  // below this a second thread costs more than it brings

int64_t rows_per_piece(int64_t row_elements) {
  return std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
}

float silu(float x) { return x / (1 + std::exp(-x)); }

float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608028654f;
  return 0.5f * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

}  // namespace

void rms_norm(const RmsNormArgs& args) {
  std::vector<float> weight(static_cast<size_t>(args.dim));
  load_floats(args.weight, args.weight_dtype, args.dim, weight.data());
  compute_pool().parallel_for(args.rows, rows_per_piece(args.dim), [&](int64_t begin, int64_t end) {
    std::vector<float> x(static_cast<size_t>(args.dim));
    for (int64_t row = begin; row < end; ++row) {
      load_floats(at(args.x, args.dtype, row * args.dim), args.dtype, args.dim, x.data());
      const float mean = dot(x.data(), x.data(), args.dim) / static_cast<float>(args.dim);
      const float scale = 1 / std::sqrt(mean + args.eps);
      for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale * weight[i];
      store_floats(x.data(), args.dim, args.dtype, at(args.out, args.dtype, row * args.dim));
    }
  });
}

void gated_activation(const GatedArgs& args) {
  compute_pool().parallel_for(args.count, kPieceElements, [&](int64_t begin, int64_t end) {
    constexpr int64_t kChunk = 256;
    float gate[kChunk];
    float up[kChunk];
    for (int64_t first = begin; first < end; first += kChunk) {
      const int64_t n = std::min(kChunk, end - first);
      load_floats(at(args.gate, args.dtype, first), args.dtype, n, gate);
      load_floats(at(args.up, args.dtype, first), args.dtype, n, up);
      for (int64_t i = 0; i < n; ++i)
        gate[i] = (args.gelu ? gelu_tanh(gate[i]) : silu(gate[i])) * up[i];
      store_floats(gate, n, args.dtype, at(args.out, args.dtype, first));
    }
  });
}

}  // namespace octavo::cpu

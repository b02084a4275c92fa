// attention.h - attention of one bfloat16 query over its sequence, one number at a time. It is the
// definition (docs/arithmetic.md): the kernels of every instruction set give these bits. No MLX.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reference/arithmetic/elementary.h"
#include "kernels/reference/arithmetic/flushed.h"

namespace octavo::arithmetic::attention {

inline constexpr int64_t kSplitKeys = 256;  // per partial result, at absolute positions
inline constexpr int64_t kTile = 32;        // inputs of one tile of a product
inline constexpr float kLowest = -3e38f;    // the maximum of no scores
inline constexpr float kLog2E = 1.44269504f;

// K and V of one sequence and KV head from position 0 on. For int8, the numbers are the codes.
struct Keys {
  int64_t k_dim = 0;
  int64_t v_dim = 0;
  std::vector<float> k;         // [positions][k_dim]
  std::vector<float> v;         // [positions][v_dim]
  std::vector<float> k_scales;  // [positions] for int8, else empty
  std::vector<float> v_scales;
};

struct Query {
  const float* q = nullptr;  // [k_dim]
  int64_t position = 0;      // sees itself and the positions before it
  int64_t last_visible = 0;  // sees the positions up to this one, too
  float scale = 1;
  int64_t window = 0;           // > 0: sees its last `window` positions only
  float soft_cap = 0;           // > 0: capped scores
  const float* sink = nullptr;  // a logit that only the denominator sees, or null
};

template <size_t kCount>
float polynomial(const std::array<float, kCount>& coefficients, float x) {
  float p = coefficients[0];
  for (size_t i = 1; i < kCount; ++i) p = fma(p, x, coefficients[i]);
  return p;
}

// x - floor(x), rounded down.
inline float fraction(float x) {
  const float whole = std::floor(x);
  const float rounded = sub(x, whole);
  return add(rounded, whole) > x ? sub(rounded, std::ldexp(1.0f, -24)) : rounded;
}

// 2^x of a weight: x is at most about 0.
inline float weight_power(float x) {
  x = min(max(x, -126), 128);
  const float p = polynomial<5>({1.34266866e-2f, 5.22424690e-2f, 2.41280213e-1f, 6.93044841e-1f, 1},
                                fraction(x));
  return mul(p, std::ldexp(1.0f, static_cast<int>(std::floor(x))));
}

// 2^(from - to), where from <= to: the factor of a partial when the maximum rises.
inline float fall(float from, float to) {
  if (!(from < to)) return 1;
  const float x = max(sub(from, to), -126);
  const float whole = round_even(x);
  const float p = polynomial<6>(
      {1.3264724e-3f, 9.671513e-3f, 5.5507336e-2f, 2.4022242e-1f, 6.93147e-1f, 1}, sub(x, whole));
  return mul(p, pow2(whole));
}

// The dot product of q and one key: per tile of 32 inputs one chain over the even ones and one over
// the odd ones.
inline float product(const float* q, const float* k, int64_t dim) {
  float sum = 0;
  for (int64_t tile = 0; tile < dim; tile += kTile) {
    float chain[2] = {0, 0};
    for (int64_t d = tile; d < dim && d < tile + kTile; ++d)
      chain[d % 2] = fma(k[d], q[d], chain[d % 2]);
    sum = add(sum, add(chain[0], chain[1]));
  }
  return sum;
}

struct Partial {
  float max = kLowest;  // of the scores, in units of log2 e
  float sum = 0;        // of the weights 2^(score - max)
  std::vector<float> values;
};

// Keys [from, to) of one split, all of them visible.
inline Partial attend_split(const Query& query, const Keys& keys, int64_t from, int64_t to) {
  const bool int8 = !keys.k_scales.empty();
  const bool capped = query.soft_cap > 0;
  const float scale = capped ? 1 : mul(query.scale, kLog2E);
  const auto count = static_cast<size_t>(to - from);
  std::vector<float> scores(count), weights(count);
  float highest = kLowest;
  for (size_t i = 0; i < count; ++i) {
    const int64_t key = from + static_cast<int64_t>(i);
    float score = product(query.q, keys.k.data() + key * keys.k_dim, keys.k_dim);
    if (int8) score = mul(score, keys.k_scales[static_cast<size_t>(key)]);
    if (capped) {
      const float bounded = tanh(mul(score, div(query.scale, query.soft_cap)));
      score = mul(mul(query.soft_cap, kLog2E), bounded);
    }
    scores[i] = score;
    highest = max(score, highest);
  }
  Partial part;
  if (highest > kLowest / 2) part.max = mul(highest, scale);
  float sums[4] = {0, 0, 0, 0};  // by position modulo 4
  for (size_t i = 0; i < count; ++i) {
    const size_t key = static_cast<size_t>(from) + i;
    const float weight = weight_power(fma(scores[i], scale, -part.max));
    sums[key % 4] = add(sums[key % 4], weight);
    weights[i] = from_bf16(to_bf16(int8 ? mul(weight, keys.v_scales[key]) : weight));
  }
  part.sum = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
  for (int64_t d = 0; d < keys.v_dim; ++d) {
    float sum = 0;
    for (int64_t tile = from / kTile * kTile; tile < to; tile += kTile) {
      float chain[2] = {0, 0};
      for (int64_t key = tile; key < tile + kTile; ++key) {
        if (key < from || key >= to) continue;
        chain[key % 2] = fma(weights[static_cast<size_t>(key - from)],
                             keys.v[static_cast<size_t>(key * keys.v_dim + d)], chain[key % 2]);
      }
      sum = add(sum, add(chain[0], chain[1]));
    }
    part.values.push_back(sum);
  }
  return part;
}

inline void fold(Partial& total, const Partial& part) {
  const float highest = max(total.max, part.max);
  const float keep = fall(total.max, highest);
  const float take = fall(part.max, highest);
  total.max = highest;
  total.sum = fma(part.sum, take, mul(total.sum, keep));
  for (size_t d = 0; d < part.values.size(); ++d)
    total.values[d] = fma(part.values[d], take, mul(total.values[d], keep));
}

// The output row as bfloat16: [v_dim].
inline std::vector<uint16_t> attend(const Query& query, const Keys& keys) {
  const int64_t own = query.position + 1;
  const int64_t end = own > query.last_visible ? own : query.last_visible + 1;
  const int64_t begin = query.window > 0 && query.window < own ? own - query.window : 0;
  Partial total;
  total.values.resize(static_cast<size_t>(keys.v_dim));
  for (int64_t split = begin / kSplitKeys * kSplitKeys; split < end; split += kSplitKeys) {
    const int64_t from = begin > split ? begin : split;
    const int64_t to = end < split + kSplitKeys ? end : split + kSplitKeys;
    fold(total, attend_split(query, keys, from, to));
  }
  float factor = div(1, total.sum);
  if (query.sink != nullptr) {
    const float sink = mul(*query.sink, kLog2E);
    const float highest = max(total.max, sink);
    const float keep = fall(total.max, highest);
    factor = div(keep, fma(total.sum, keep, fall(sink, highest)));
  }
  std::vector<uint16_t> out;
  for (const float value : total.values) out.push_back(to_bf16(add(mul(value, factor), 0)));
  return out;
}

}  // namespace octavo::arithmetic::attention

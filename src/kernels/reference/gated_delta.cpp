// The oracle: one token at a time, all heads at once, in plain MLX.
#include "kernels/gated_delta.h"

#include <cmath>
#include <vector>

#include "kernels/reference/state_blocks.h"

namespace octavo::reference {
namespace {

mx::array wide_columns(const mx::array& array, int first, int count) {
  const mx::array part = mx::slice(array, {0, first}, {array.shape(0), first + count});
  return mx::astype(part, mx::float32);
}

// [T, heads * dim] as [T, heads, dim], each head divided by its length.
mx::array unit_heads(const mx::array& x, int heads, int dim) {
  const mx::array by_head = mx::reshape(x, {x.shape(0), heads, dim});
  const mx::array squares = mx::sum(mx::square(by_head), -1, true);
  return mx::multiply(by_head, mx::rsqrt(mx::add(squares, mx::array(1e-6f))));
}

// The recurrence's inputs: q, k [T, Hv, 1, Dk], v [T, Hv, Dv], decay [T, Hv, 1, 1],
// beta [T, Hv, 1].
struct Prepared {
  mx::array q, k, v, decay, beta;
};

Prepared prepare(const GatedDeltaRows& rows, const GatedDeltaWeights& weights,
                 const StateGeometry& g, int key_heads) {
  const int tokens = rows.qkv.shape(0);
  const int keys = key_heads * g.k_dim;
  const auto for_values = [&](const mx::array& heads) {
    return mx::expand_dims(mx::repeat(heads, g.heads / key_heads, 1), 2);
  };
  const mx::array scale(1 / std::sqrt(static_cast<float>(g.k_dim)));
  const mx::array q = unit_heads(wide_columns(rows.qkv, 0, keys), key_heads, g.k_dim);
  const mx::array k = unit_heads(wide_columns(rows.qkv, keys, keys), key_heads, g.k_dim);
  const mx::array v = wide_columns(rows.qkv, 2 * keys, g.heads * g.v_dim);
  const mx::array a = wide_columns(rows.gates, rows.a_column, g.heads);
  const mx::array b = wide_columns(rows.gates, rows.b_column, g.heads);
  const mx::array step = mx::logaddexp(mx::add(a, weights.dt_bias), mx::array(0.0f));
  const mx::array decay = mx::exp(mx::negative(mx::multiply(mx::exp(weights.a_log), step)));
  return {for_values(mx::multiply(q, scale)), for_values(k),
          mx::reshape(v, {tokens, g.heads, g.v_dim}), mx::reshape(decay, {tokens, g.heads, 1, 1}),
          mx::reshape(mx::sigmoid(b), {tokens, g.heads, 1})};
}

// Row t without its first axis.
mx::array at(const mx::array& array, int t) { return mx::take(array, t, 0); }

}  // namespace

GatedDelta gated_delta(const StatePages& pages, const GatedDeltaRows& rows,
                       const GatedDeltaWeights& weights, const GatedDeltaOptions& options,
                       const BatchLayout& layout, const mx::array& table) {
  count_launch("gated_delta.reference");
  const StateGeometry& g = pages.geometry;
  const Prepared p = prepare(rows, weights, g, options.key_heads);
  StatePages written = pages;
  std::vector<mx::array> outputs;
  for (const StateRows& sequence : state_rows(layout, table)) {
    mx::array state = read_state(written, sequence, StatePart::kRecurrent);
    for (int t = sequence.begin; t < sequence.end; ++t) {
      state = mx::multiply(state, at(p.decay, t));
      const mx::array memory = mx::sum(mx::multiply(state, at(p.k, t)), -1);
      const mx::array change = mx::multiply(mx::subtract(at(p.v, t), memory), at(p.beta, t));
      state = mx::add(state, mx::multiply(mx::expand_dims(change, -1), at(p.k, t)));
      outputs.push_back(mx::sum(mx::multiply(state, at(p.q, t)), -1));
      if (sequence.keeps_each_row(g)) {
        written = write_state(written, sequence, StatePart::kRecurrent, state, t - sequence.begin);
      }
    }
    if (!sequence.keeps_each_row(g))
      written = write_state(written, sequence, StatePart::kRecurrent, state);
  }
  const mx::array y = mx::stack(outputs, 0);
  const mx::array mean = mx::mean(mx::square(y), -1, true);
  mx::array out = mx::multiply(y, mx::rsqrt(mx::add(mean, mx::array(options.norm_eps))));
  out = mx::multiply(out, mx::astype(weights.norm, mx::float32));
  const mx::array z =
      mx::reshape(wide_columns(rows.gates, rows.z_column, g.heads * g.v_dim), y.shape());
  out = mx::multiply(out, mx::multiply(z, mx::sigmoid(z)));
  return {mx::astype(mx::reshape(out, {y.shape(0), -1}), rows.qkv.dtype()), written};
}

}  // namespace octavo::reference

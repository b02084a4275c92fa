// The oracle: one token at a time, all heads at once, in plain MLX.
#include "kernels/mamba2.h"

#include <vector>

#include "kernels/reference/state_blocks.h"

namespace octavo::reference {
namespace {

// Columns in float32, as [T, heads, dim].
mx::array wide_heads(const mx::array& array, int first, int heads, int dim) {
  const mx::array part = mx::slice(array, {0, first}, {array.shape(0), first + heads * dim});
  return mx::reshape(mx::astype(part, mx::float32), {array.shape(0), heads, dim});
}

}  // namespace

Mamba2 mamba2(const StatePages& pages, const Mamba2Rows& rows, const Mamba2Weights& weights,
              const Mamba2Options& options, const BatchLayout& layout, const mx::array& table) {
  count_launch("mamba2.reference");
  const StateGeometry& g = pages.geometry;
  const int tokens = rows.xbc.shape(0), groups = options.groups, values = g.heads * g.v_dim;
  // [T, groups, N] as [T, H, 1, N]
  const auto for_heads = [&](int first) {
    const mx::array by_group = wide_heads(rows.xbc, first, groups, g.k_dim);
    return mx::expand_dims(mx::repeat(by_group, g.heads / groups, 1), 2);
  };
  const mx::array x = wide_heads(rows.xbc, 0, g.heads, g.v_dim);
  const mx::array b = for_heads(values);
  const mx::array c = for_heads(values + groups * g.k_dim);
  const mx::array dt = mx::squeeze(wide_heads(rows.gates, rows.dt_column, g.heads, 1), -1);
  const mx::array step = mx::logaddexp(mx::add(dt, weights.dt_bias), mx::array(0.0f));
  const mx::array decay = mx::reshape(
      mx::exp(mx::negative(mx::multiply(mx::exp(weights.a_log), step))), {tokens, g.heads, 1, 1});
  // [T, H, P, 1]
  const mx::array change =
      mx::expand_dims(mx::multiply(x, mx::reshape(step, {tokens, g.heads, 1})), -1);
  const auto at = [](const mx::array& array, int t) { return mx::take(array, t, 0); };
  StatePages written = pages;
  std::vector<mx::array> outputs;
  for (const StateRows& sequence : state_rows(layout, table)) {
    mx::array state = read_state(written, sequence, StatePart::kRecurrent);
    for (int t = sequence.begin; t < sequence.end; ++t) {
      state = mx::add(mx::multiply(state, at(decay, t)), mx::multiply(at(change, t), at(b, t)));
      outputs.push_back(mx::sum(mx::multiply(state, at(c, t)), -1));
      if (sequence.keeps_each_row(g))
        written = write_state(written, sequence, StatePart::kRecurrent, state, t - sequence.begin);
    }
    if (!sequence.keeps_each_row(g))
      written = write_state(written, sequence, StatePart::kRecurrent, state);
  }
  const mx::array skip = mx::multiply(x, mx::reshape(weights.d, {1, g.heads, 1}));
  const mx::array y = mx::add(mx::stack(outputs, 0), skip);
  const mx::array z = wide_heads(rows.gates, rows.z_column, g.heads, g.v_dim);
  const mx::array out = mx::multiply(y, mx::multiply(z, mx::sigmoid(z)));
  return {mx::astype(mx::reshape(out, {tokens, values}), rows.xbc.dtype()), written};
}

}  // namespace octavo::reference

// The oracles of the row-wise operations, in plain MLX.
#include "kernels/activation.h"
#include "kernels/add_rows.h"
#include "kernels/gate_rows.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace octavo::reference {

namespace {

// In float32, not yet rounded.
mx::array norm_wide(const mx::array& x, const NormSpec& spec) {
  mx::array wide = mx::astype(x, mx::float32);
  if (spec.kind == Norm::kLayer) wide = mx::subtract(wide, mx::mean(wide, -1, true));
  const mx::array mean = mx::mean(mx::square(wide), -1, true);
  mx::array y = mx::multiply(wide, mx::rsqrt(mx::add(mean, mx::array(spec.eps))));
  y = mx::multiply(y, mx::astype(spec.weight, mx::float32));
  if (spec.bias) y = mx::add(y, mx::astype(*spec.bias, mx::float32));
  return y;
}

}  // namespace

mx::array norm(const mx::array& x, const NormSpec& spec) {
  count_launch("norm.reference");
  return mx::astype(norm_wide(x, spec), x.dtype());
}

mx::array group_norm(const mx::array& x, const NormSpec& spec, int groups) {
  const int width = x.shape(-1) / groups;
  NormSpec by_group = spec;
  by_group.weight = mx::reshape(spec.weight, {groups, width});
  return mx::reshape(reference::norm(mx::reshape(x, {-1, groups, width}), by_group), x.shape());
}

mx::array add_rows(const mx::array& x, const mx::array& y, const AddRowsOptions& options) {
  count_launch("add_rows.reference");
  const mx::array rows = options.norm ? norm_wide(y, *options.norm) : mx::astype(y, mx::float32);
  mx::array sum = mx::add(mx::astype(x, mx::float32), mx::multiply(rows, mx::array(options.scale)));
  sum = mx::multiply(sum, mx::array(options.out_scale));
  if (x.dtype() == mx::float16) sum = mx::clip(sum, mx::array(-65504.0f), mx::array(65504.0f));
  return mx::astype(sum, x.dtype());
}

namespace {

// [T, pairs] float32: the position of each pair on its axis, or [T, 1] if all have the first.
mx::array positions_of_pairs(const RopeArrays& rope) {
  mx::array rows = mx::astype(rope.positions, mx::float32);
  if (rows.ndim() == 1) return mx::expand_dims(rows, 1);
  rows = mx::transpose(rows);
  return rope.axes ? mx::take(rows, *rope.axes, 1) : mx::slice(rows, {0, 0}, {rows.shape(0), 1});
}

}  // namespace

mx::array rope(const mx::array& x, const RopeArrays& by, float magnitude) {
  count_launch("rope.reference");
  const int pairs = by.pairs();
  const int tokens = x.shape(0);
  const int heads = x.shape(1);
  const mx::array angles =
      mx::reshape(mx::multiply(positions_of_pairs(by), by.inverse_frequencies), {tokens, 1, pairs});
  const mx::array cosine = mx::multiply(mx::cos(angles), mx::array(magnitude));
  const mx::array sine = mx::multiply(mx::sin(angles), mx::array(magnitude));
  const mx::array wide = mx::astype(x, mx::float32);
  const mx::array a = mx::slice(wide, {0, 0, 0}, {tokens, heads, pairs});
  const mx::array b = mx::slice(wide, {0, 0, pairs}, {tokens, heads, 2 * pairs});
  const mx::array rest = mx::slice(wide, {0, 0, 2 * pairs}, {tokens, heads, x.shape(2)});
  const mx::array first = mx::subtract(mx::multiply(a, cosine), mx::multiply(b, sine));
  const mx::array second = mx::add(mx::multiply(b, cosine), mx::multiply(a, sine));
  return mx::contiguous(mx::astype(mx::concatenate({first, second, rest}, -1), x.dtype()));
}

mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation) {
  count_launch("gated_activation.reference");
  const mx::array g = mx::astype(gate, mx::float32);
  const mx::array u = mx::astype(up, mx::float32);
  const auto result = [&](const mx::array& active, const mx::array& factor) {
    return mx::astype(mx::multiply(active, factor), gate.dtype());
  };
  switch (activation) {  // without a default, so that the compiler reports a missing activation
    case Activation::kBoundedSilu: {
      const mx::array limit(7.0f);
      const mx::array low = mx::minimum(g, limit);
      const mx::array bounded = mx::clip(u, mx::array(-7.0f), limit);
      const mx::array active = mx::multiply(low, mx::sigmoid(mx::multiply(mx::array(1.702f), low)));
      return result(active, mx::add(bounded, mx::array(1.0f)));
    }
    case Activation::kGelu: {
      const mx::array half = mx::multiply(mx::array(0.5f), g);
      const mx::array scaled = mx::multiply(g, mx::array(0.7071067811865476f));
      return result(mx::multiply(half, mx::add(mx::array(1.0f), mx::erf(scaled))), u);
    }
    case Activation::kGeluTanh: {
      const mx::array cube = mx::multiply(mx::multiply(g, g), g);
      const mx::array inner = mx::multiply(mx::array(0.7978845608028654f),
                                           mx::add(g, mx::multiply(mx::array(0.044715f), cube)));
      return result(
          mx::multiply(mx::multiply(mx::array(0.5f), g), mx::add(mx::array(1.0f), mx::tanh(inner))),
          u);
    }
    case Activation::kRelu:
      return result(mx::maximum(g, mx::array(0.0f)), u);
    case Activation::kSilu:
      break;
  }
  return result(mx::multiply(g, mx::sigmoid(g)), u);
}

mx::array gate_rows(const Columns& x, const Columns& gate, int count, Gate kind) {
  count_launch("gate_rows.reference");
  const auto wide = [&](const Columns& columns) {
    const mx::array part =
        mx::slice(columns.rows, {0, columns.first}, {columns.rows.shape(0), columns.first + count});
    return mx::astype(part, mx::float32);
  };
  const mx::array g = wide(gate);
  const mx::array y = mx::multiply(wide(x), kind == Gate::kSigmoid ? mx::sigmoid(g) : g);
  return mx::astype(y, x.rows.dtype());
}

}  // namespace octavo::reference

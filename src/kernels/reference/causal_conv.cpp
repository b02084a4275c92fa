// The oracle: one shifted product per tap, in plain MLX.
#include "kernels/causal_conv.h"

#include "kernels/reference/slice_rows.h"
#include "kernels/reference/state_blocks.h"

namespace octavo::reference {
namespace {

// [units, rows, channels of a unit] and [rows, channels].
mx::array rows_of_units(const mx::array& units) {
  return mx::reshape(mx::transpose(units, {1, 0, 2}), {units.shape(1), -1});
}
mx::array units_of_rows(const mx::array& rows, int units) {
  return mx::transpose(mx::reshape(rows, {rows.shape(0), units, -1}), {1, 0, 2});
}

}  // namespace

Convolved causal_conv(const StatePages& pages, const mx::array& x, const ConvWeights& weights,
                      const ConvOptions& options, const BatchLayout& layout,
                      const mx::array& table) {
  count_launch("causal_conv.reference");
  const StateGeometry& g = pages.geometry;
  const mx::array taps = mx::astype(weights.taps, mx::float32);
  const mx::array channels =
      mx::slice(x, {0, options.first_column}, {x.shape(0), options.first_column + g.channels()});
  StatePages written = pages;
  std::vector<mx::array> outputs;
  for (const StateRows& rows : state_rows(layout, table)) {
    const mx::array past = rows_of_units(read_state(written, rows, StatePart::kConvolution));
    const mx::array all = mx::concatenate({past, slice_rows(channels, rows.begin, rows.end)}, 0);
    const int count = rows.end - rows.begin;
    mx::array y = mx::zeros({count, g.channels()}, mx::float32);
    if (weights.bias) y = mx::add(y, mx::astype(*weights.bias, mx::float32));
    for (int j = 0; j <= g.conv_rows; ++j) {
      const mx::array shifted = mx::astype(slice_rows(all, j, j + count), mx::float32);
      y = mx::add(y, mx::multiply(slice_rows(taps, j, j + 1), shifted));
    }
    if (options.activation == ConvActivation::kSilu) y = mx::multiply(y, mx::sigmoid(y));
    outputs.push_back(y);
    const bool each = rows.keeps_each_row(g);
    for (int row = each ? 0 : count - 1; row < count; ++row) {
      const mx::array kept = slice_rows(all, row + 1, row + 1 + g.conv_rows);
      written = write_state(written, rows, StatePart::kConvolution,
                            units_of_rows(kept, g.conv_units), each ? row : 0);
    }
  }
  return {mx::astype(mx::concatenate(outputs, 0), x.dtype()), written};
}

}  // namespace octavo::reference

#include "models/layers/gated_delta.h"

#include <utility>

namespace octavo {
namespace {

// Row order for a matrix that is grouped by key head, with parts of `sizes` rows each: the first
// parts of all heads, then the second parts, and so on.
std::vector<int> rows_by_part(int heads, const std::vector<int>& sizes) {
  int head_rows = 0;
  for (int size : sizes) head_rows += size;
  std::vector<int> order;
  int first = 0;
  for (int size : sizes) {
    for (int head = 0; head < heads; ++head)
      for (int row = 0; row < size; ++row) order.push_back(head * head_rows + first + row);
    first += size;
  }
  return order;
}

// Entry r: the row of a file with tiled value heads of `size` rows that becomes row r; the first
// `before` rows stay. Empty if the heads are not tiled.
std::vector<int> untiled(const GatedDeltaPlan& plan, int size, int before = 0) {
  std::vector<int> order;
  if (!plan.tiled_values) return order;
  const int ratio = plan.value_heads / plan.key_heads;
  for (int row = 0; row < before; ++row) order.push_back(row);
  for (int head = 0; head < plan.value_heads; ++head) {
    const int tiled = head % ratio * plan.key_heads + head / ratio;
    for (int row = 0; row < size; ++row) order.push_back(before + tiled * size + row);
  }
  return order;
}

DividedLinear load_inputs(const GatedDeltaPlan& plan, int hidden, const std::string& prefix,
                          WeightSource& source) {
  const int values = plan.value_heads * plan.v_dim;
  DividedLinear layers;
  const auto load = [&](const char* name, int rows, const std::vector<int>& order = {}) {
    layers.add(source, prefix + name, rows, hidden, false, order);
  };
  if (plan.joined_by_head) {
    const int ratio = plan.value_heads / plan.key_heads;
    if (source.has_matrix(prefix + ".in_proj_qkv")) {  // GGUF files have them apart
      load(".in_proj_qkv", plan.conv_channels());
      load(".in_proj_z", values);
    } else {
      load(".in_proj_qkvz", plan.conv_channels() + values,
           rows_by_part(plan.key_heads,
                        {plan.k_dim, plan.k_dim, ratio * plan.v_dim, ratio * plan.v_dim}));
    }
    load(".in_proj_ba", 2 * plan.value_heads, rows_by_part(plan.key_heads, {ratio, ratio}));
  } else {
    load(".in_proj_qkv", plan.conv_channels(), untiled(plan, plan.v_dim, plan.key_columns()));
    load(".in_proj_z", values, untiled(plan, plan.v_dim));
    load(".in_proj_b", plan.value_heads, untiled(plan, 1));
    load(".in_proj_a", plan.value_heads, untiled(plan, 1));
  }
  return layers;
}

}  // namespace

GatedDeltaNet::GatedDeltaNet(const GatedDeltaPlan& plan, const DecoderPlan& model, int layer,
                             const std::string& prefix, WeightSource& source)
    : plan_(plan),
      norm_eps_(model.norm_eps),
      layer_(layer),
      inputs_(load_inputs(plan, model.hidden, prefix, source)),
      conv_{source.conv_taps(prefix + ".conv1d.weight", plan.conv_channels(), plan.conv_kernel,
                             untiled(plan, plan.v_dim, plan.key_columns()))},
      weights_{source.float_vector(prefix + ".A_log", plan.value_heads, untiled(plan, 1)),
               source.float_vector(prefix + ".dt_bias", plan.value_heads, untiled(plan, 1)),
               source.vector(prefix + ".norm.weight", plan.v_dim)},
      output_(source, prefix + ".out_proj", model.hidden, plan.value_heads * plan.v_dim, false) {}

// The columns of the output matrix are tiled: quantised columns cannot be reordered, so the rows are.
mx::array GatedDeltaNet::tiled(const mx::array& values) const {
  const int ratio = plan_.value_heads / plan_.key_heads;
  const mx::array grouped =
      mx::reshape(values, {values.shape(0), plan_.key_heads, ratio, plan_.v_dim});
  return mx::reshape(mx::contiguous(mx::transpose(grouped, {0, 2, 1, 3})), values.shape());
}

mx::array GatedDeltaNet::forward(const mx::array& x, const Surroundings& around,
                                 ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  const mx::array joined = inputs_.forward(x, into, context.ranks);

  const mx::array& table = context.table(layer_);
  const auto [qkv, convolved] =
      causal_conv(context.kv.state(layer_), joined, conv_, {.activation = ConvActivation::kSilu},
                  context.layout, table);
  const int z_column = plan_.conv_channels();
  const int b_column = z_column + plan_.value_heads * plan_.v_dim;
  const auto [values, written] = gated_delta(
      convolved,
      {.qkv = qkv,
       .gates = joined,
       .z_column = z_column,
       .a_column = b_column + plan_.value_heads,
       .b_column = b_column},
      weights_, {.key_heads = plan_.key_heads, .norm_eps = norm_eps_}, context.layout, table);
  context.kv.rebind(layer_, written.bytes);
  LinearOptions out;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  return output_.forward(plan_.tiled_values ? tiled(values) : values, out, context.ranks);
}

}  // namespace octavo

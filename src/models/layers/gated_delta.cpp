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

std::vector<Projection> load_inputs(const GatedDeltaPlan& plan, int hidden,
                                    const std::string& prefix, WeightSource& source) {
  const int values = plan.value_heads * plan.v_dim;
  std::vector<Projection> layers;
  const auto load = [&](const char* name, int rows, const std::vector<int>& order = {}) {
    layers.push_back(load_projection(source, prefix + name, rows, hidden, false, order));
  };
  if (plan.joined_by_head) {
    const int ratio = plan.value_heads / plan.key_heads;
    load(".in_proj_qkvz", plan.conv_channels() + values,
         rows_by_part(plan.key_heads,
                      {plan.k_dim, plan.k_dim, ratio * plan.v_dim, ratio * plan.v_dim}));
    load(".in_proj_ba", 2 * plan.value_heads, rows_by_part(plan.key_heads, {ratio, ratio}));
  } else {
    load(".in_proj_qkv", plan.conv_channels());
    load(".in_proj_z", values);
    load(".in_proj_b", plan.value_heads);
    load(".in_proj_a", plan.value_heads);
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
      conv_{source.conv_taps(prefix + ".conv1d.weight", plan.conv_channels(), plan.conv_kernel)},
      weights_{source.float_vector(prefix + ".A_log", plan.value_heads),
               source.float_vector(prefix + ".dt_bias", plan.value_heads),
               source.vector(prefix + ".norm.weight", plan.v_dim)},
      output_(load_projection(source, prefix + ".out_proj", model.hidden,
                              plan.value_heads * plan.v_dim, false)) {}

mx::array GatedDeltaNet::forward(const mx::array& x, const Surroundings& around,
                                 ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  const mx::array joined = joined_linear(x, inputs_, into);

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
  return linear(values, output_.weight, out);
}

}  // namespace octavo

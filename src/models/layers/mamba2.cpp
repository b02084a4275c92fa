#include "models/layers/mamba2.h"

namespace octavo {
namespace {

ConvWeights load_mamba_conv(const Mamba2Plan& plan, const std::string& name, WeightSource& source) {
  ConvWeights weights{source.conv_taps(name + ".weight", plan.conv_channels(), plan.conv_kernel)};
  if (plan.conv_bias) weights.bias = source.vector(name + ".bias", plan.conv_channels());
  return weights;
}

}  // namespace

Mamba2Mixer::Mamba2Mixer(const Mamba2Plan& plan, const DecoderPlan& model, int layer,
                         const std::string& prefix, WeightSource& source)
    : plan_(plan),
      layer_(layer),
      input_(source, prefix + ".in_proj", plan.values() + plan.conv_channels() + plan.heads,
             model.hidden, plan.bias),
      conv_(load_mamba_conv(plan, prefix + ".conv1d", source)),
      weights_{source.float_vector(prefix + ".A_log", plan.heads),
               source.float_vector(prefix + ".dt_bias", plan.heads),
               source.float_vector(prefix + ".D", plan.heads)},
      norm_{source.vector(prefix + ".norm.weight", plan.values()), model.norm_eps},
      output_(source, prefix + ".out_proj", model.hidden, plan.values(), plan.bias) {}

mx::array Mamba2Mixer::forward(const mx::array& x, const Surroundings& around,
                               ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  const mx::array rows = input_.forward(x, into, context.ranks);

  const mx::array& table = context.table(layer_);
  const auto [xbc, convolved] = causal_conv(
      context.kv.state(layer_), rows, conv_,
      {.first_column = plan_.values(), .activation = ConvActivation::kSilu}, context.layout, table);
  const auto [values, written] = mamba2(convolved,
                                        {.xbc = xbc,
                                         .gates = rows,
                                         .z_column = 0,
                                         .dt_column = plan_.values() + plan_.conv_channels()},
                                        weights_, {.groups = plan_.groups}, context.layout, table);
  context.kv.rebind(layer_, written.bytes);

  LinearOptions out;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  if (plan_.norm_groups == 1) {
    out.norm = norm_;
    return output_.forward(values, out, context.ranks);
  }
  return output_.forward(group_norm(values, norm_, plan_.norm_groups, context.path), out,
                         context.ranks);
}

}  // namespace octavo

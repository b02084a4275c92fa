#include "models/layers/short_conv.h"

#include "kernels/gate_rows.h"

namespace octavo {
namespace {

ConvWeights load_conv(const ShortConvPlan& plan, const std::string& name, WeightSource& source) {
  ConvWeights weights{source.conv_taps(name + ".weight", plan.channels, plan.kernel)};
  if (plan.bias) weights.bias = source.vector(name + ".bias", plan.channels);
  return weights;
}

}  // namespace

ShortConv::ShortConv(const ShortConvPlan& plan, int hidden, int layer, const std::string& prefix,
                     WeightSource& source)
    : plan_(plan),
      layer_(layer),
      input_(source, prefix + ".in_proj", 3 * plan.channels, hidden, plan.bias),
      conv_(load_conv(plan, prefix + ".conv", source)),
      output_(source, prefix + ".out_proj", hidden, plan.channels, plan.bias) {}

mx::array ShortConv::forward(const mx::array& x, const Surroundings& around,
                             ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  const mx::array rows = input_.forward(x, into, context.ranks);
  const int channels = plan_.channels;
  const mx::array gated =
      gate_rows({rows, 2 * channels}, {rows, 0}, channels, Gate::kPlain, context.path);

  const auto [y, pages] = causal_conv(context.kv.state(layer_), gated, conv_, {}, context.layout,
                                      context.table(layer_));
  context.kv.rebind(layer_, pages.bytes);

  LinearOptions out;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  return output_.forward(gate_rows({y}, {rows, channels}, channels, Gate::kPlain, context.path),
                         out, context.ranks);
}

}  // namespace octavo

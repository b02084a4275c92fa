#include "models/layers/short_conv.h"

namespace octavo {
namespace {

ConvWeights load_conv(const ShortConvPlan& plan, const std::string& name, WeightSource& source) {
  ConvWeights weights{source.conv_taps(name + ".weight", plan.channels, plan.kernel)};
  if (plan.bias) weights.bias = source.vector(name + ".bias", plan.channels);
  return weights;
}

mx::array columns(const mx::array& rows, int first, int count) {
  return mx::slice(rows, {0, first}, {rows.shape(0), first + count});
}

}  // namespace

ShortConv::ShortConv(const ShortConvPlan& plan, int hidden, int layer, const std::string& prefix,
                     WeightSource& source)
    : plan_(plan),
      layer_(layer),
      input_(load_projection(source, prefix + ".in_proj", 3 * plan.channels, hidden, plan.bias)),
      conv_(load_conv(plan, prefix + ".conv", source)),
      output_(load_projection(source, prefix + ".out_proj", hidden, plan.channels, plan.bias)) {}

mx::array ShortConv::forward(const mx::array& x, const Surroundings& around,
                             ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.bias = input_.bias;
  into.path = context.path;
  const mx::array rows = linear(x, input_.weight, into);
  const mx::array b = columns(rows, 0, plan_.channels);
  const mx::array c = columns(rows, plan_.channels, plan_.channels);
  const mx::array gated = mx::multiply(b, columns(rows, 2 * plan_.channels, plan_.channels));

  const auto [y, pages] = causal_conv(context.kv.state(layer_), gated, conv_, {}, context.layout,
                                      context.block_tables.back());
  context.kv.rebind(layer_, pages.bytes);

  LinearOptions out;
  out.bias = output_.bias;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  return linear(mx::multiply(c, y), output_.weight, out);
}

}  // namespace octavo

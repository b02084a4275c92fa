#include "models/layers/mlp.h"

namespace octavo {

Mlp::Mlp(const MlpPlan& plan, int hidden, const std::string& prefix, WeightSource& source)
    : activation_(plan.activation),
      gate_(load_projection(source, prefix + ".gate_proj", plan.intermediate, hidden, plan.bias)),
      up_(load_projection(source, prefix + ".up_proj", plan.intermediate, hidden, plan.bias)),
      down_(load_projection(source, prefix + ".down_proj", hidden, plan.intermediate, plan.bias)) {}

mx::array Mlp::forward(const mx::array& x, const Surroundings& around,
                       ForwardContext& context) const {
  LinearOptions first;
  first.norm = around.norm;
  first.path = context.path;
  LinearOptions second;
  second.bias = down_.bias;
  if (around.add_input) second.residual = x;
  second.path = context.path;
  return linear(gated_linear(x, gate_, up_, activation_, first), down_.weight, second);
}

}  // namespace octavo

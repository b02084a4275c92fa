#include "models/layers/moe.h"

#include "models/layers/experts.h"

namespace octavo {

Moe::Moe(const MoePlan& plan, int hidden, const std::string& prefix, WeightSource& source)
    : choice_(plan.choice),
      router_(load_projection(source, prefix + "." + plan.names.router, plan.choice.experts, hidden,
                              plan.router_bias)),
      experts_(load_experts(plan, hidden, prefix, source)) {
  if (plan.choice_bias) {
    choice_bias_ = source.float_vector(prefix + "." + plan.names.choice_bias, choice_.experts);
  }
  if (plan.shared_intermediate > 0) {
    const MlpPlan shared{.intermediate = plan.shared_intermediate,
                         .activation = plan.activation,
                         .fused = plan.shared_fused,
                         .gated = plan.gated};
    shared_.emplace(shared, hidden, prefix + "." + plan.names.shared, source);
  }
  if (plan.shared_gate)
    shared_gate_ = source.matrix(prefix + "." + plan.names.shared_gate, 1, hidden);
}

Routing Moe::route(const mx::array& x, KernelPath path) const {
  LinearOptions into;
  into.bias = router_.bias;
  into.out_dtype = mx::float32;
  into.path = path;
  RoutingOptions options;
  options.bias = choice_bias_;
  options.path = path;
  return route_experts(linear(x, router_.weight, into), choice_, options);
}

mx::array Moe::forward(const mx::array& x, const Surroundings& around,
                       ForwardContext& context) const {
  const mx::array rows = around.norm ? norm(x, *around.norm, context.path) : x;
  ExpertOptions options;
  options.path = context.path;
  if (around.add_input) options.residual = x;
  if (shared_)
    options.shared = shared_->forward(rows, {.norm = std::nullopt, .add_input = false}, context);
  if (shared_gate_) {
    LinearOptions gate;
    gate.out_dtype = mx::float32;
    gate.path = context.path;
    options.shared_gate = linear(rows, *shared_gate_, gate);
  }
  return expert_mlp(rows, route(rows, context.path), experts_, options);
}

}  // namespace octavo

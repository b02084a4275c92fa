#include "models/layers/moe.h"

#include "models/layers/experts.h"

namespace octavo {

Moe::Moe(const MoePlan& plan, int hidden, const std::string& prefix, WeightSource& source,
         int layer)
    : choice_(plan.choice),
      intermediate_(plan.intermediate),
      layer_(layer),
      router_(load_projection(source, prefix + "." + plan.names.router, plan.choice.experts, hidden,
                              plan.router_bias)),
      experts_(load_experts(plan, hidden, prefix, source)) {
  if (plan.choice_bias) {
    choice_bias_ = source.float_vector(prefix + "." + plan.names.choice_bias, choice_.experts);
  }
  if (plan.shared_intermediate > 0) {
    shared_.emplace(plan.shared_mlp(), hidden, prefix + "." + plan.names.shared, source, layer);
  }
  if (plan.shared_gate)
    shared_gate_ = source.matrix(prefix + "." + plan.names.shared_gate, 1, hidden);
}

Routing Moe::route(const mx::array& x, KernelPath path, const LoraStep* lora) const {
  LinearOptions into;
  if (lora != nullptr) into.lora = lora->router(layer_);
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
  const LoraStep* lora = layer_ >= 0 ? context.lora : nullptr;
  ExpertOptions options;
  options.path = context.path;
  if (around.add_input) options.residual = x;
  if (shared_)
    options.shared = shared_->forward(rows, {.norm = std::nullopt, .add_input = false}, context);
  if (shared_gate_) {
    LinearOptions gate;
    gate.out_dtype = mx::float32;
    gate.path = context.path;
    if (lora != nullptr) gate.lora = lora->shared_gate(layer_);
    options.shared_gate = linear(rows, *shared_gate_, gate);
  }
  if (lora != nullptr) options.lora = lora->experts(layer_);
  return run_experts(rows, route(rows, context.path, lora), experts_, intermediate_, options,
                     context.ranks);
}

}  // namespace octavo

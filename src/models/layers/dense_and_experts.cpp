#include "models/layers/dense_and_experts.h"

#include <cmath>

#include "kernels/add_rows.h"
#include "kernels/linear.h"
#include "models/layers/experts.h"

namespace octavo {
namespace {

NormSpec load_norm(const DecoderPlan& model, const std::string& name, WeightSource& source) {
  return {source.norm(name + ".weight", model.hidden, model.norm_offset), model.norm_eps};
}

// The router uses a norm without weights, then multiplies by these scales and by hidden^-0.5.
NormSpec load_router_norm(const DecoderPlan& model, const std::string& name, WeightSource& source) {
  const float scale = 1 / std::sqrt(static_cast<float>(model.hidden));
  mx::array weights = mx::multiply(source.float_vector(name, model.hidden), mx::array(scale));
  weights.eval();
  return {weights, model.norm_eps};
}

}  // namespace

DenseAndExperts::DenseAndExperts(const DenseAndExpertsPlan& plan, const DecoderPlan& model,
                                 const std::string& at, WeightSource& source, int layer)
    : choice_(plan.experts.choice),
      intermediate_(plan.experts.intermediate),
      layer_(layer),
      dense_(plan.dense, model.hidden, at + "mlp", source, layer),
      experts_(load_experts(plan.experts, model.hidden, at.substr(0, at.size() - 1), source)),
      router_(source.matrix(at + "router.proj", choice_.experts, model.hidden)),
      router_norm_(load_router_norm(model, at + "router.scale", source)),
      expert_scales_(source.float_vector(at + "router.per_expert_scale", choice_.experts)),
      dense_norm_out_(load_norm(model, at + "post_feedforward_layernorm_1", source)),
      experts_norm_in_(load_norm(model, at + "pre_feedforward_layernorm_2", source)),
      experts_norm_out_(load_norm(model, at + "post_feedforward_layernorm_2", source)) {}

Routing DenseAndExperts::route(const mx::array& x, KernelPath path, const LoraStep* lora) const {
  LinearOptions into;
  if (lora != nullptr) into.lora = lora->router(layer_);
  into.norm = router_norm_;
  into.out_dtype = mx::float32;
  into.path = path;
  RoutingOptions options;
  options.expert_scales = expert_scales_;
  options.path = path;
  return route_experts(linear(x, router_, into), choice_, options);
}

mx::array DenseAndExperts::forward(const mx::array& x, const Surroundings& around,
                                   ForwardContext& context) const {
  const KernelPath path = context.path;
  const mx::array dense = dense_.forward(x, {.norm = around.norm, .add_input = false}, context);
  ExpertOptions options;
  options.path = path;
  const LoraStep* lora = layer_ >= 0 ? context.lora : nullptr;
  if (lora != nullptr) options.lora = lora->experts(layer_);
  const mx::array chosen = run_experts(norm(x, experts_norm_in_, path), route(x, path, lora),
                                       experts_, intermediate_, options, context.ranks);
  const mx::array sum = add_rows(norm(dense, dense_norm_out_, path), chosen,
                                 {.norm = experts_norm_out_, .path = path});
  return around.add_input ? add_rows(x, sum, {.path = path}) : sum;
}

}  // namespace octavo

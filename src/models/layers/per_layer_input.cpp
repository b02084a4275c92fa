#include "models/layers/per_layer_input.h"

#include <cmath>

#include "base/error.h"
#include "kernels/activation.h"
#include "kernels/add_rows.h"

namespace octavo {
namespace {

int total_width(const PerLayerInputPlan& plan, const DecoderPlan& model) {
  return plan.width * static_cast<int>(model.layers.size());
}

}  // namespace

PerLayerRows::PerLayerRows(const PerLayerInputPlan& plan, const DecoderPlan& model,
                           WeightSource& source)
    : plan_(plan),
      table_(source.matrix(model.tensor("embed_tokens_per_layer"), plan.vocab,
                           total_width(plan, model))),
      projection_(source.matrix(model.tensor("per_layer_model_projection"),
                                total_width(plan, model), model.hidden)),
      norm_{source.norm(model.tensor("per_layer_projection_norm.weight"), plan.width,
                        model.norm_offset),
            model.norm_eps} {}

mx::array PerLayerRows::rows(const mx::array& tokens, const mx::array& embedded,
                             KernelPath path) const {
  const float scale = std::sqrt(static_cast<float>(plan_.width));
  const mx::array own = embed(table_, tokens, embedded.dtype(), path, scale);
  LinearOptions options;
  options.scale = 1 / std::sqrt(static_cast<float>(projection_.cols));
  options.path = path;
  const mx::array projected = linear(embedded, projection_, options);
  // Normalises each layer's part separately.
  const mx::Shape parts{static_cast<int>(own.size()) / plan_.width, plan_.width};
  const mx::array sum = add_rows(mx::reshape(own, parts), mx::reshape(projected, parts),
                                 {.norm = norm_, .out_scale = std::sqrt(0.5f), .path = path});
  return mx::reshape(sum, own.shape());
}

PerLayerInput::PerLayerInput(const PerLayerInputPlan& plan, int hidden, int layer,
                             const std::string& prefix, WeightSource& source)
    : first_(layer * plan.width),
      gate_(source.matrix(prefix + "per_layer_input_gate", plan.width, hidden)),
      projection_(source.matrix(prefix + "per_layer_projection", hidden, plan.width)) {}

mx::array PerLayerInput::forward(const mx::array& x, const Surroundings& around,
                                 ForwardContext& context) const {
  OCTAVO_CHECK(context.per_layer.has_value());
  LinearOptions first;
  first.norm = around.norm;
  first.path = context.path;
  LinearOptions second;
  if (around.add_input) second.residual = x;
  second.path = context.path;
  const mx::array gated = gated_activation(linear(x, gate_, first), *context.per_layer, first_,
                                           Activation::kGeluTanh, context.path);
  return linear(gated, projection_, second);
}

}  // namespace octavo

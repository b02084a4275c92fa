// The oracles of the mixture of experts, in plain MLX.
#include "kernels/activation.h"
#include "kernels/expert_halves.h"
#include "kernels/expert_mlp.h"
#include "kernels/expert_routing.h"

namespace octavo::reference {
namespace {

// The indices of the `count` largest along the last axis, ascending.
mx::array largest(const mx::array& keys, int count) {
  mx::array order = mx::argsort(mx::negative(keys), -1);
  mx::Shape stop = order.shape();
  stop.back() = count;
  return mx::sort(mx::slice(order, mx::Shape(stop.size(), 0), stop), -1);
}

// 0 for every expert outside the best groups.
mx::array best_groups_only(const mx::array& keys, const ExpertChoice& choice) {
  const int tokens = keys.shape(0);
  const int size = choice.experts / choice.groups;
  const mx::array grouped = mx::reshape(keys, {tokens, choice.groups, size});
  const mx::array worth = choice.group_score == GroupScore::kBest
                              ? mx::max(grouped, -1)
                              : mx::sum(mx::topk(grouped, 2, -1), -1);
  const mx::array kept = largest(worth, choice.top_groups);
  const mx::array mask =
      mx::put_along_axis(mx::zeros({tokens, choice.groups}), kept, mx::ones(kept.shape()), -1);
  return mx::reshape(mx::multiply(grouped, mx::expand_dims(mask, -1)), keys.shape());
}

// x: [T, K, cols] or [T, 1, cols], each token's experts: [T, K]. Returns [T, K, rows] in float32. `lora`:
// the adapters of the layer, or null.
mx::array product(const mx::array& x, const ExpertProjection& layer, const mx::array& ids,
                  const ExpertOptions& options, const LoraMatrices* lora) {
  const mx::array weight = mx::take(dequantize(layer.weight), ids, 0);
  const mx::array column = mx::expand_dims(mx::astype(x, mx::float32), -1);
  mx::array y = mx::squeeze(mx::matmul(weight, column), -1);
  if (lora != nullptr)
    y = add_expert_lora(y, x, ids, layer.weight.count, options.lora->rows, *lora);
  return layer.bias ? mx::add(y, mx::astype(mx::take(*layer.bias, ids, 0), mx::float32)) : y;
}

// In x's dtype.
mx::array activations(const mx::array& x, const mx::array& gate, const mx::array& up,
                      Activation activation) {
  return mx::astype(reference::gated_activation(gate, up, activation), x.dtype());
}

// given: the products of `down`, [T, K, rows]. Returns [T, rows] of `dtype`.
mx::array sum_of(const mx::array& given, const Routing& routing, const ExpertOptions& options,
                 mx::Dtype dtype) {
  mx::array y = mx::sum(mx::multiply(given, mx::expand_dims(routing.weights, -1)), 1);
  if (options.shared) {
    mx::array shared = mx::astype(*options.shared, mx::float32);
    if (options.shared_gate) shared = mx::multiply(shared, mx::sigmoid(*options.shared_gate));
    y = mx::add(y, shared);
  }
  if (options.residual) y = mx::add(mx::astype(*options.residual, mx::float32), y);
  return mx::astype(y, dtype);
}

}  // namespace

Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options) {
  count_launch("route_experts.reference");
  mx::array scores = logits;
  if (choice.score == ExpertScore::kSoftmax) scores = mx::softmax(logits, -1);
  if (choice.score == ExpertScore::kSigmoid) scores = mx::sigmoid(logits);
  mx::array keys = options.bias ? mx::add(scores, *options.bias) : scores;
  if (choice.top_groups < choice.groups) keys = best_groups_only(keys, choice);
  const mx::array ids = largest(keys, choice.top_k);
  mx::array weights = mx::take_along_axis(scores, ids, -1);
  if (choice.score == ExpertScore::kSoftmaxOfChosen) weights = mx::softmax(weights, -1);
  if (choice.renormalize) {
    const mx::array total = mx::sum(weights, -1, true);
    weights = mx::divide(weights, mx::add(total, mx::array(choice.renormalize_eps)));
  }
  weights = mx::multiply(weights, mx::array(choice.scale));
  if (options.expert_scales)
    weights = mx::multiply(weights, mx::take(*options.expert_scales, ids, 0));
  return {mx::contiguous(mx::astype(ids, mx::int32)), mx::contiguous(weights)};
}

mx::array expert_mlp(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                     const ExpertOptions& options) {
  count_launch("expert_mlp.reference");
  const mx::array row = mx::expand_dims(x, 1);
  const auto lora = [&](const LoraMatrices* ExpertLora::*layer) {
    return options.lora ? (*options.lora).*layer : nullptr;
  };
  const mx::array gate = product(row, experts.gate, routing.ids, options, lora(&ExpertLora::gate));
  const mx::array up = product(row, experts.up, routing.ids, options, lora(&ExpertLora::up));
  const mx::array inner = activations(x, gate, up, experts.activation);
  const mx::array given =
      product(inner, experts.down, routing.ids, options, lora(&ExpertLora::down));
  return sum_of(given, routing, options, x.dtype());
}

mx::array expert_activations(const mx::array& x, const Routing& routing,
                             const ExpertProjection& gate, const ExpertProjection& up,
                             Activation activation) {
  count_launch("expert_activations.reference");
  const mx::array row = mx::expand_dims(x, 1);
  const auto of = [&](const ExpertProjection& layer) {
    return product(row, layer, routing.ids, {}, nullptr);
  };
  return activations(x, of(gate), of(up), activation);
}

mx::array expert_outputs(const mx::array& inner, const Routing& routing,
                         const ExpertProjection& down, const ExpertOptions& options) {
  count_launch("expert_outputs.reference");
  const mx::array given = product(inner, down, routing.ids, options, nullptr);
  return sum_of(given, routing, options, inner.dtype());
}

}  // namespace octavo::reference

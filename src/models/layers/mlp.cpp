#include "models/layers/mlp.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "kernels/activation.h"
#include "models/layers/projection.h"

namespace octavo {

namespace {

// Loads gate or up, which may be fused in one matrix.
Projection load_first(const MlpPlan& plan, int hidden, const std::string& prefix, bool is_up,
                      WeightSource& source) {
  const int rows = plan.intermediate;
  const std::vector<int> own = source.share().picks(rows);
  // mlx-lm's converter splits the fused matrix of some families.
  if (!plan.fused || source.has_matrix(prefix + ".gate_proj")) {
    return load_projection(source, prefix + (is_up ? ".up_proj" : ".gate_proj"), rows, hidden,
                           plan.bias, own);
  }
  OCTAVO_CHECK(!plan.bias);
  return {
      source.matrix_part(prefix + ".gate_up_proj", {is_up ? rows : 0, 2 * rows}, rows, hidden, own),
      std::nullopt};
}

}  // namespace

Mlp::Mlp(const MlpPlan& plan, int hidden, const std::string& prefix, WeightSource& source,
         int layer)
    : activation_(plan.activation),
      squares_(plan.squares),
      intermediate_(plan.intermediate),
      layer_(layer),
      gate_(plan.gated ? std::optional(load_first(plan, hidden, prefix, false, source))
                       : std::nullopt),
      up_(load_first(plan, hidden, prefix, true, source)),
      down_(source, prefix + ".down_proj", hidden, plan.intermediate, plan.bias) {}

mx::array Mlp::forward(const mx::array& x, const Surroundings& around,
                       ForwardContext& context) const {
  LinearOptions first;
  first.norm = around.norm;
  first.path = context.path;
  LinearOptions second;
  if (around.add_input) second.residual = x;
  second.path = context.path;
  if (context.lora != nullptr && layer_ >= 0) {
    first.lora = gate_ ? context.lora->gate_and_up(layer_) : context.lora->up(layer_);
    second.lora = context.lora->down(layer_);
  }
  const auto activations = [&] {
    if (gate_) return gated_linear(x, *gate_, up_, activation_, first);
    first.bias = up_.bias;
    const mx::array up = linear(x, up_.weight, first);
    return squares_ ? gated_activation(up, up, activation_, context.path)
                    : activation(up, activation_, context.path);
  };
  mx::array inner = activations();
  if (context.ranks != nullptr)
    inner = context.ranks->gather(inner, std::array{intermediate_}, kStripRows);
  return down_.forward(inner, second, context.ranks);
}

}  // namespace octavo

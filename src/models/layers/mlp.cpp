#include "models/layers/mlp.h"

#include "kernels/activation.h"

namespace octavo {

Mlp::Mlp(const MlpPlan& plan, int hidden, const std::string& prefix, WeightSource& source)
    : activation_(plan.activation),
      gate_(load_projection(source, prefix + ".gate_proj", plan.intermediate, hidden, plan.bias)),
      up_(load_projection(source, prefix + ".up_proj", plan.intermediate, hidden, plan.bias)),
      down_(load_projection(source, prefix + ".down_proj", hidden, plan.intermediate, plan.bias)) {}

mx::array Mlp::forward(const mx::array& x, KernelPath path) const {
  return down_(gated_activation(gate_(x, path), up_(x, path), activation_, path), path);
}

}  // namespace octavo

#include "models/plans/moe_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/widen.h"

namespace octavo {

MlpPlan MoePlan::shared_mlp() const {
  return {.intermediate = shared_intermediate,
          .activation = activation,
          .fused = shared_fused,
          .gated = gated};
}

std::string MoePlan::describe() const {
  const std::string shared =
      shared_intermediate > 0 ? fmt::format(" and a shared one of {}", shared_intermediate) : "";
  return fmt::format("{} of {} experts of {}{}", choice.top_k, choice.experts, intermediate,
                     shared);
}

uint64_t MoePlan::expert_parameters(int hidden) const {
  const uint64_t first = gated ? 2 : 1;
  const uint64_t biases = expert_bias ? first * widen(intermediate) + widen(hidden) : 0;
  return (first + 1) * widen(hidden) * widen(intermediate) + biases;
}

uint64_t MoePlan::parameters(int hidden) const {
  const int unused = choice.experts - choice.top_k;
  return active_parameters(hidden) + widen(unused) * expert_parameters(hidden);
}

uint64_t MoePlan::active_parameters(int hidden) const {
  const uint64_t biases = widen(router_bias + choice_bias) * widen(choice.experts);
  const uint64_t router = widen(hidden) * widen(choice.experts) + biases;
  const uint64_t shared = (gated ? 3 : 2) * widen(hidden) * widen(shared_intermediate);
  return router + shared + (shared_gate ? widen(hidden) : 0) +
         widen(choice.top_k) * expert_parameters(hidden);
}

double MoePlan::expected_share(uint64_t tokens) const {
  const double missed = 1 - static_cast<double>(choice.top_k) / choice.experts;
  return 1 - std::pow(missed, static_cast<double>(tokens));
}

// The normed row; logits, ids and weights in 32 bits; intermediates and result of the shared
// expert.
uint64_t MoePlan::row_elements(int hidden) const {
  const int inner = shared_intermediate * (gated ? 1 : 2);
  const uint64_t shared = shared_intermediate > 0 ? widen(inner + hidden) : 0;
  return widen(hidden) + 2 * widen(choice.experts + 2 * choice.top_k + 1) + shared;
}

uint64_t MoePlan::widest_input(int hidden) const {
  return widen(std::max({hidden, intermediate, shared_intermediate}));
}

}  // namespace octavo

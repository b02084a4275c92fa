// Qwen3.5 and later, dense or with experts: a hybrid whose delta layers have separate projections
// for q, k and v, for the gate, and for the two parameters of each head. Positions have three axes.
#include "models/families/families.h"
#include "models/families/qwen_axes.h"
#include "models/families/qwen_hybrid.h"

namespace octavo {

DecoderPlan plan_qwen3_5(const Config& config) {
  DecoderPlan plan = plan_qwen_hybrid(config, "qwen3_5");
  for (RopePlan& rope : plan.ropes)
    rope.axes = qwen_rope_axes(config, rope.inverse_frequencies.size(), {11, 11, 10});
  return plan;
}

}  // namespace octavo

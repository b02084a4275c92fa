// GLM-4.7-Flash: DeepSeek-V3's layers; the norms of the latents use the model's epsilon.
#include "models/families/deepseek_like.h"
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_glm4_moe_lite(const Config& config) {
  DecoderPlan plan = plan_deepseek_like(config, "glm4_moe_lite");
  if (config.number_or("partial_rotary_factor", 1) != 1)
    config.fail("partial_rotary_factor", "is not 1; not supported for this family");
  route_by_sigmoid(config, plan);
  each_attention(plan, [&](MlaPlan& attention) { attention.rank_eps = plan.norm_eps; });
  return plan;
}

}  // namespace octavo

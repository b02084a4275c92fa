// OLMo 3: OLMo 2 with a sliding window in three of four layers, whose rope is not scaled.
#include "models/families/families.h"
#include "models/families/llama_like.h"

namespace octavo {

DecoderPlan plan_olmo3(const Config& config) {
  DecoderPlan plan = plan_olmo2(config);
  plan.family = "olmo3";
  const int dims = plan.layers[0].attention().head_dim;
  const double theta = config.number_or("rope_theta", 500000);
  plan.ropes = {
      plan_rope_of(config, "full_attention", dims, {theta, config.object("rope_scaling")}),
      plan_rope_of(config, "sliding_attention", dims, {theta})};
  const std::vector<bool> sliding = sliding_layers(config, plan.layers.size(), 4);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (!sliding[i]) continue;
    plan.layers[i].attention().window = config.integer("sliding_window");
    plan.layers[i].attention().rope = 1;
  }
  return plan;
}

}  // namespace octavo

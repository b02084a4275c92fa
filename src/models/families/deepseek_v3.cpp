// DeepSeek-V3 and R1: V2's layers, experts picked by sigmoid scores with a bias. The layer for
// predicting several tokens that checkpoints have behind the last one is not loaded.
#include "models/families/deepseek_like.h"
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_deepseek_v3(const Config& config) {
  DecoderPlan plan = plan_deepseek_like(config, "deepseek_v3");
  route_by_sigmoid(config, plan);
  return plan;
}

}  // namespace octavo

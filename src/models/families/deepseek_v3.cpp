// DeepSeek-V3 and R1: V2's layers, experts chosen by sigmoid scores with a bias. The multi-token
// prediction layer at the end of the checkpoint is a drafter (find_mtp.cpp).
#include "models/families/deepseek_like.h"
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_deepseek_v3(const Config& config) {
  DecoderPlan plan = plan_deepseek_like(config, "deepseek_v3");
  route_by_sigmoid(config, plan);
  return plan;
}

}  // namespace octavo

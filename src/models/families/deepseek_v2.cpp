// DeepSeek-V2 and V2-Lite: experts chosen by softmax scores, in V2 from the best groups only.
#include <fmt/format.h>

#include "models/families/deepseek_like.h"
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_deepseek_v2(const Config& config) {
  DecoderPlan plan = plan_deepseek_like(config, "deepseek_v2");
  const std::string method = config.text_or("topk_method", "greedy");
  const bool grouped = method == "group_limited_greedy";
  if (!grouped && method != "greedy" && method != "gready") {
    config.fail(
        "topk_method",
        fmt::format("is \"{}\"; only greedy and group_limited_greedy are supported", method));
  }
  if (const std::string score = config.text_or("scoring_func", "softmax"); score != "softmax")
    config.fail("scoring_func", fmt::format("is \"{}\"; only softmax is supported", score));
  if (config.boolean_or("norm_topk_prob", false))
    config.fail("norm_topk_prob", "is true; not supported for this family");
  each_experts(plan, [&](MoePlan& experts) {
    experts.choice.group_score = GroupScore::kBest;
    if (!grouped) experts.choice.groups = experts.choice.top_groups = 1;
  });
  return plan;
}

}  // namespace octavo

// SmolLM3: Llama in which every n-th layer has no rope.
#include "models/families/families.h"
#include "models/families/llama_like.h"
#include "models/families/qwen_windows.h"

namespace octavo {

DecoderPlan plan_smollm3(const Config& config) {
  refuse_windows(config);
  DecoderPlan plan = plan_llama_like(config, "smollm3");
  const auto interval = static_cast<size_t>(config.integer_or("no_rope_layer_interval", 4, 1));
  const std::vector<int> with_rope =
      config.integers("no_rope_layers");  // 1 where the layer has rope
  if (!with_rope.empty() && with_rope.size() != plan.layers.size()) {
    config.fail("no_rope_layers", "does not have one entry per layer");
  }
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const bool rope = with_rope.empty() ? (i + 1) % interval != 0 : with_rope[i] != 0;
    if (!rope) plan.layers[i].attention().rope = std::nullopt;
  }
  return plan;
}

}  // namespace octavo

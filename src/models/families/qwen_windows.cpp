#include "models/families/qwen_windows.h"

#include <string>
#include <vector>

#include "models/families/llama_like.h"

namespace octavo {

void set_qwen_windows(const Config& given, DecoderPlan& plan) {
  const Config config = given.with_defaults({{"sliding_window", 4096}});
  const bool windowed = config.boolean_or("use_sliding_window", false);
  const auto first = static_cast<size_t>(config.integer_or("max_window_layers", 28));
  const int window = config.integer_or("sliding_window", 0);
  const size_t layers = plan.layers.size();
  std::vector<bool> sliding = layers_of_type(config, layers, "sliding_attention", "full_attention");
  for (size_t i = sliding.size(); i < layers; ++i) sliding.push_back(windowed && i >= first);
  for (size_t i = 0; i < layers; ++i) {
    if (!sliding[i]) continue;
    if (!windowed)
      config.fail("layer_types", "has sliding_attention, but use_sliding_window is not true");
    plan.layers[i].attention().window = window;
  }
}

void refuse_windows(const Config& config) {
  if (config.boolean_or("use_sliding_window", false))
    config.fail("use_sliding_window", "is true; a sliding window is not supported for this family");
  for (const std::string& type : config.texts("layer_types")) {
    if (type != "full_attention")
      config.fail("layer_types",
                  "has an entry other than full_attention; not supported for this family");
  }
  config.disregard({"sliding_window", "max_window_layers"});
}

}  // namespace octavo

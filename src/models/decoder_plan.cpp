#include "models/decoder_plan.h"

namespace octavo {

std::vector<SoftmaxSpec> DecoderPlan::cache_specs(DType dtype, KvFormat format) const {
  std::vector<SoftmaxSpec> specs;
  for (const auto& layer : layers) {
    const AttentionPlan& a = layer.attention;
    specs.push_back({.kv_heads = a.kv_heads,
                     .k_dim = a.head_dim,
                     .v_dim = a.head_dim,
                     .dtype = dtype,
                     .window = a.window,
                     .format = format});
  }
  return specs;
}

}  // namespace octavo

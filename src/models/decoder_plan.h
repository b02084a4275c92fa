// decoder_plan.h - a decoder as data: what a family file fills in from a config, and the layers
// follow. No MLX.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/softmax_spec.h"
#include "kernels/activation_kind.h"
#include "models/rope_scaling.h"

namespace octavo {

struct AttentionPlan {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0;       // on the scores; usually head_dim^-0.5
  int window = 0;        // > 0: a token sees its last `window` positions
  float soft_cap = 0;    // > 0: scores are capped
  bool qk_norm = false;  // RMS norm of q and k per head, before rope
  bool qkv_bias = false;
  bool output_bias = false;
  std::optional<int> rope;  // index into DecoderPlan::ropes; none: no position in this layer
};

struct MlpPlan {
  int intermediate = 0;
  Activation activation = Activation::kSilu;
  bool bias = false;
};

struct LayerPlan {
  AttentionPlan attention;
  MlpPlan mlp;
};

struct DecoderPlan {
  std::string family;  // as users know it: "llama", "qwen3"
  int vocab = 0;
  int hidden = 0;
  int max_context = 0;
  float norm_eps = 0;
  bool tied_embeddings = false;
  bool has_head = true;  // false: no logits are wanted, the matrix behind the layers is not loaded
  std::vector<RopePlan> ropes;
  std::vector<LayerPlan> layers;

  // What each layer keeps in the cache.
  std::vector<SoftmaxSpec> cache_specs(DType dtype, KvFormat format) const;
};

}  // namespace octavo

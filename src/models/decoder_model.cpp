#include "models/decoder_model.h"

#include <fmt/format.h>

#include <utility>

namespace octavo {

DecoderModel::DecoderModel(DecoderPlan plan, DType dtype, WeightSource& source)
    : plan_(std::move(plan)),
      dtype_(dtype),
      embeddings_(source.matrix("model.embed_tokens", plan_.vocab, plan_.hidden)),
      final_norm_(source.vector("model.norm.weight", plan_.hidden)) {
  for (const auto& rope : plan_.ropes) {
    const auto pairs = static_cast<int>(rope.inverse_frequencies.size());
    ropes_.emplace_back(rope.inverse_frequencies.begin(), mx::Shape{pairs}, mx::float32);
  }
  layers_.reserve(plan_.layers.size());
  for (size_t i = 0; i < plan_.layers.size(); ++i) {
    const std::string prefix = fmt::format("model.layers.{}", i);
    layers_.push_back({
        source.vector(prefix + ".input_layernorm.weight", plan_.hidden),
        Attention(plan_, static_cast<int>(i), prefix + ".self_attn", source),
        source.vector(prefix + ".post_attention_layernorm.weight", plan_.hidden),
        Mlp(plan_.layers[i].mlp, plan_.hidden, prefix + ".mlp", source),
    });
  }
  if (!plan_.tied_embeddings && plan_.has_head) lm_head_ = source.matrix("lm_head", plan_.vocab, plan_.hidden);
}

mx::array DecoderModel::embed(const mx::array& tokens, KernelPath path) const {
  return octavo::embed(embeddings_, tokens, mlx_dtype(dtype_), path);
}

mx::array DecoderModel::forward(const mx::array& embedded, const BatchLayout& layout,
                                std::span<const mx::array> block_tables, KvStore& kv,
                                KernelPath path) const {
  ForwardContext context{
      .layout = layout, .block_tables = block_tables, .ropes = ropes_, .kv = kv, .path = path};
  mx::array x = embedded;
  for (const auto& layer : layers_) {
    x = layer.attention.forward(x, {layer.attention_norm, plan_.norm_eps}, context);
    x = layer.mlp.forward(x, {layer.mlp_norm, plan_.norm_eps}, path);
  }
  return x;
}

mx::array DecoderModel::logits(const mx::array& hidden, KernelPath path) const {
  LinearOptions options;
  options.norm = NormSpec{final_norm_, plan_.norm_eps};
  options.out_dtype = mx::float32;
  options.path = path;
  return linear(hidden, lm_head_ ? *lm_head_ : embeddings_, options);
}

mx::array DecoderModel::final_rows(const mx::array& hidden, KernelPath path) const {
  // Wide before the norm, so that nothing is rounded behind it.
  return norm(mx::astype(hidden, mx::float32), {final_norm_, plan_.norm_eps}, path);
}

}  // namespace octavo

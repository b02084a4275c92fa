#include "models/layers/attention.h"

#include "kernels/norm.h"
#include "kernels/rope.h"

namespace octavo {

Attention::Attention(const DecoderPlan& model, int layer, const std::string& prefix,
                     WeightSource& source)
    : plan_(model.layers[static_cast<size_t>(layer)].attention),
      norm_eps_(model.norm_eps),
      layer_(layer),
      q_(load_rope_projection(source, prefix + ".q_proj", plan_.heads * plan_.head_dim,
                              model.hidden, plan_.head_dim, plan_.qkv_bias)),
      k_(load_rope_projection(source, prefix + ".k_proj", plan_.kv_heads * plan_.head_dim,
                              model.hidden, plan_.head_dim, plan_.qkv_bias)),
      v_(load_projection(source, prefix + ".v_proj", plan_.kv_heads * plan_.head_dim, model.hidden,
                         plan_.qkv_bias)),
      output_(load_projection(source, prefix + ".o_proj", model.hidden,
                              plan_.heads * plan_.head_dim, plan_.output_bias)) {
  if (plan_.rope) rope_magnitude_ = model.ropes[static_cast<size_t>(*plan_.rope)].magnitude;
  if (plan_.qk_norm) {
    q_norm_ = source.vector(prefix + ".q_norm.weight", plan_.head_dim);
    k_norm_ = source.vector(prefix + ".k_norm.weight", plan_.head_dim);
  }
}

mx::array Attention::prepare(const mx::array& projected, int heads,
                             const std::optional<mx::array>& norm,
                             const ForwardContext& context) const {
  mx::array x = mx::reshape(projected, {projected.shape(0), heads, plan_.head_dim});
  if (norm) x = rms_norm(x, *norm, norm_eps_, context.path);
  if (!plan_.rope) return x;
  const mx::array& frequencies = context.ropes[static_cast<size_t>(*plan_.rope)];
  return rope(x, context.layout.positions, frequencies, rope_magnitude_, context.path);
}

mx::array Attention::forward(const mx::array& x, const NormSpec& norm,
                             ForwardContext& context) const {
  const int tokens = x.shape(0);
  LinearOptions into;
  into.norm = norm;
  into.path = context.path;
  const auto project = [&](const Projection& layer) {
    return joined_linear(x, std::span(&layer, 1), into);
  };
  const mx::array q = prepare(project(q_), plan_.heads, q_norm_, context);
  const mx::array k = prepare(project(k_), plan_.kv_heads, k_norm_, context);
  const mx::array v = mx::reshape(project(v_), {tokens, plan_.kv_heads, plan_.head_dim});

  const int group = context.kv.plan().places[static_cast<size_t>(layer_)].group;
  const mx::array& table = context.block_tables[static_cast<size_t>(group)];
  const KvPages pages = kv_write(context.kv.layer(layer_), k, v, context.layout, table);
  context.kv.rebind(layer_, pages);
  const mx::array attended =
      paged_attention(q, pages, context.layout, table,
                      {.scale = plan_.scale, .window = plan_.window, .soft_cap = plan_.soft_cap});
  LinearOptions out;
  out.bias = output_.bias;
  out.residual = x;
  out.path = context.path;
  return linear(mx::reshape(attended, {tokens, plan_.heads * plan_.head_dim}), output_.weight, out);
}

}  // namespace octavo

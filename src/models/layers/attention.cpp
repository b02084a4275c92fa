#include "models/layers/attention.h"

#include "base/error.h"
#include "kernels/gate_rows.h"
#include "kernels/qkv_write.h"
#include "models/row_orders.h"

namespace octavo {

namespace {

// The gates, if any, then q, k and v in the order of qkv_write.
std::vector<Projection> load_qkv(const DecoderPlan& model, const AttentionPlan& plan,
                                 const std::string& prefix, WeightSource& source) {
  const int q = plan.heads * plan.head_dim;
  const int kv = plan.kv_heads * plan.head_dim;
  const bool bias = plan.qkv_bias;
  std::vector<Projection> layers;
  if (plan.fused_qkv) {
    layers.push_back(load_projection(source, prefix + ".qkv_proj", q + 2 * kv, model.hidden, bias));
    return layers;
  }
  RopeRows order{plan.head_dim, 0, plan.interleaved_rope};
  if (plan.rope) {
    const RopePlan& rope = model.ropes[static_cast<size_t>(*plan.rope)];
    order.rope_dims = 2 * static_cast<int>(rope.inverse_frequencies.size());
  }
  if (plan.output_gate) {
    layers.push_back(
        load_projection(source, prefix + ".q_proj", 2 * q, model.hidden, bias, gates_first(plan)));
  } else {
    layers.push_back(
        load_rope_projection(source, prefix + ".q_proj", q, model.hidden, order, bias));
  }
  if (plan.shares_layer) {
    for (const char* unused : {".k_proj.weight", ".v_proj.weight", ".k_norm.weight"})
      source.skip(prefix + unused);
    return layers;
  }
  layers.push_back(load_rope_projection(source, prefix + ".k_proj", kv, model.hidden, order, bias));
  if (plan.values_are_keys) return layers;
  layers.push_back(load_projection(source, prefix + ".v_proj", kv, model.hidden, bias));
  return layers;
}

}  // namespace

Attention::Attention(const AttentionPlan& plan, const DecoderPlan& model, int layer,
                     const std::string& prefix, WeightSource& source)
    : plan_(plan),
      norm_eps_(model.norm_eps),
      layer_(layer),
      qkv_(load_qkv(model, plan_, prefix, source)),
      output_(load_projection(source, prefix + ".o_proj", model.hidden,
                              plan_.heads * plan_.head_dim, plan_.output_bias)) {
  if (plan_.rope) rope_magnitude_ = model.ropes[static_cast<size_t>(*plan_.rope)].magnitude;
  if (plan_.sinks) sinks_ = source.float_vector(prefix + ".sinks", plan_.heads);
  if (!plan_.qk_norm) return;
  OCTAVO_CHECK(!plan_.interleaved_rope);  // the norm weights would have to be reordered too
  const auto load = [&](const char* name, int heads) {
    const int size = plan_.norms_rows ? heads * plan_.head_dim : plan_.head_dim;
    return source.norm(prefix + name, size, model.norm_offset);
  };
  q_norm_ = load(".q_norm.weight", plan_.heads);
  if (!plan_.shares_layer) k_norm_ = load(".k_norm.weight", plan_.kv_heads);
}

QkvOptions Attention::qkv_options(const ForwardContext& context) const {
  QkvOptions options{.q_heads = plan_.heads,
                     .first_column = plan_.output_gate ? plan_.heads * plan_.head_dim : 0,
                     .q_norm = q_norm_,
                     .k_norm = k_norm_,
                     .v_norm = plan_.v_norm,
                     .norm_eps = norm_eps_,
                     .rope_magnitude = rope_magnitude_,
                     .position_beta = plan_.position_beta,
                     .position_period = plan_.position_period,
                     .values_are_keys = plan_.values_are_keys};
  if (plan_.rope) options.inverse_frequencies = context.ropes[static_cast<size_t>(*plan_.rope)];
  return options;
}

mx::array Attention::forward(const mx::array& x, const Surroundings& around,
                             ForwardContext& context) const {
  const int width = plan_.heads * plan_.head_dim;
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  if (context.lora != nullptr) into.lora = context.lora->qkv(layer_);
  const mx::array qkv = joined_linear(x, qkv_, into);

  const mx::array& table = context.table(layer_);
  const auto attend = [&](const mx::array& q, const KvPages& pages) {
    const mx::array attended = paged_attention(q, pages, context.layout, table,
                                               {.scale = plan_.scale,
                                                .window = plan_.window,
                                                .soft_cap = plan_.soft_cap,
                                                .sinks = sinks_});
    return mx::reshape(attended, {x.shape(0), width});
  };
  const auto write_and_attend = [&] {
    const auto [q, pages] =
        qkv_write(context.kv.layer(layer_), qkv, context.layout, table, qkv_options(context));
    context.kv.rebind(layer_, pages.bytes);
    return attend(q, pages);
  };
  mx::array attended =
      plan_.shares_layer
          ? attend(prepare_queries(qkv, context.layout, qkv_options(context), context.path),
                   context.kv.layer(layer_))
          : write_and_attend();
  if (plan_.output_gate)
    attended = gate_rows({attended}, {qkv}, width, Gate::kSigmoid, context.path);
  LinearOptions out;
  out.bias = output_.bias;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  if (context.lora != nullptr) out.lora = context.lora->output(layer_);
  return linear(attended, output_.weight, out);
}

}  // namespace octavo

#include "models/layers/attention.h"

#include "kernels/gate_rows.h"
#include "kernels/qkv_write.h"

namespace octavo {

namespace {

// Of a q_proj whose heads have a gate behind their q: all gates, then all q.
std::vector<int> gates_first(const AttentionPlan& plan) {
  std::vector<int> order;
  for (const int part : {plan.head_dim, 0}) {
    for (int head = 0; head < plan.heads; ++head)
      for (int row = 0; row < plan.head_dim; ++row)
        order.push_back(2 * head * plan.head_dim + part + row);
  }
  return order;
}

// The gates if there are any, then the three in the order qkv_write takes them.
std::vector<Projection> load_qkv(const DecoderPlan& model, const AttentionPlan& plan,
                                 const std::string& prefix, WeightSource& source) {
  const int q = plan.heads * plan.head_dim;
  const int kv = plan.kv_heads * plan.head_dim;
  std::vector<Projection> layers;
  if (plan.output_gate) {
    layers.push_back(load_projection(source, prefix + ".q_proj", 2 * q, model.hidden, plan.qkv_bias,
                                     gates_first(plan)));
  } else {
    layers.push_back(load_rope_projection(source, prefix + ".q_proj", q, model.hidden,
                                          plan.head_dim, plan.qkv_bias));
  }
  layers.push_back(load_rope_projection(source, prefix + ".k_proj", kv, model.hidden, plan.head_dim,
                                        plan.qkv_bias));
  layers.push_back(load_projection(source, prefix + ".v_proj", kv, model.hidden, plan.qkv_bias));
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
  if (plan_.qk_norm) {
    q_norm_ = source.norm(prefix + ".q_norm.weight", plan_.head_dim, model.norm_offset);
    k_norm_ = source.norm(prefix + ".k_norm.weight", plan_.head_dim, model.norm_offset);
  }
}

mx::array Attention::forward(const mx::array& x, const Surroundings& around,
                             ForwardContext& context) const {
  const int width = plan_.heads * plan_.head_dim;
  LinearOptions into;
  into.norm = around.norm;
  into.path = context.path;
  const mx::array qkv = joined_linear(x, qkv_, into);

  const int group = context.kv.plan().places[static_cast<size_t>(layer_)].group;
  const mx::array& table = context.block_tables[static_cast<size_t>(group)];
  QkvOptions options{.q_heads = plan_.heads,
                     .first_column = plan_.output_gate ? width : 0,
                     .q_norm = q_norm_,
                     .k_norm = k_norm_,
                     .norm_eps = norm_eps_,
                     .rope_magnitude = rope_magnitude_};
  if (plan_.rope) options.inverse_frequencies = context.ropes[static_cast<size_t>(*plan_.rope)];
  const auto [q, pages] = qkv_write(context.kv.layer(layer_), qkv, context.layout, table, options);
  context.kv.rebind(layer_, pages.bytes);
  mx::array attended =
      paged_attention(q, pages, context.layout, table,
                      {.scale = plan_.scale, .window = plan_.window, .soft_cap = plan_.soft_cap});
  attended = mx::reshape(attended, {x.shape(0), width});
  if (plan_.output_gate)
    attended = gate_rows({attended}, {qkv}, width, Gate::kSigmoid, context.path);
  LinearOptions out;
  out.bias = output_.bias;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  return linear(attended, output_.weight, out);
}

}  // namespace octavo

#include "models/layers/attention.h"

#include <array>

#include "base/error.h"
#include "kernels/gate_rows.h"
#include "kernels/qkv_write.h"
#include "models/layers/projection.h"
#include "models/row_orders.h"

namespace octavo {

namespace {

// The heads of this rank; no heads stand for all of them.
struct OwnHeads {
  std::vector<int> q, kv;
};

OwnHeads own_heads(const AttentionPlan& plan, const OutputShare& share) {
  if (plan.norms_rows) return {};
  OwnHeads own{.q = {}, .kv = share.picks(plan.kv_heads, 1)};
  own.q = rows_of_heads(own.kv, plan.heads / plan.kv_heads);
  return own;
}

// The rows of this rank in a matrix that holds blocks of heads: of the query heads, `q_blocks` times,
// and of the KV heads, `kv_blocks` times.
std::vector<int> own_rows(const AttentionPlan& plan, const OwnHeads& own, int q_blocks,
                          int kv_blocks) {
  std::vector<int> rows;
  int first = 0;
  const auto add = [&](const std::vector<int>& heads, int all, int blocks) {
    for (int i = 0; i < blocks; ++i, first += all * plan.head_dim) {
      const std::vector<int> block = rows_of_heads(heads, plan.head_dim, first);
      rows.insert(rows.end(), block.begin(), block.end());
    }
  };
  add(own.q, plan.heads, q_blocks);
  add(own.kv, plan.kv_heads, kv_blocks);
  return rows;
}

// The gates, if any, then q, k and v in the order of qkv_write.
std::vector<Projection> load_qkv(const DecoderPlan& model, const AttentionPlan& plan,
                                 const std::string& prefix, WeightSource& source) {
  const int q = plan.heads * plan.head_dim;
  const int kv = plan.kv_heads * plan.head_dim;
  const bool bias = plan.qkv_bias;
  const OwnHeads own = own_heads(plan, source.share());
  std::vector<Projection> layers;
  if (plan.fused_qkv) {
    layers.push_back(load_projection(source, prefix + ".qkv_proj", q + 2 * kv, model.hidden, bias,
                                     own_rows(plan, own, 1, 2)));
    return layers;
  }
  const std::vector<int> q_rows = own_rows(plan, own, 1, 0);
  const std::vector<int> kv_rows = own_rows(plan, own, 0, 1);
  RopeRows order{plan.head_dim, 0, plan.interleaved_rope};
  if (plan.rope) {
    const RopePlan& rope = model.ropes[static_cast<size_t>(*plan.rope)];
    order.rope_dims = 2 * static_cast<int>(rope.inverse_frequencies.size());
  }
  if (plan.output_gate) {
    layers.push_back(load_projection(source, prefix + ".q_proj", 2 * q, model.hidden, bias,
                                     picked_rows(gates_first(plan), own_rows(plan, own, 2, 0))));
  } else {
    layers.push_back(
        load_rope_projection(source, prefix + ".q_proj", q, model.hidden, order, bias, q_rows));
  }
  if (plan.shares_layer) {
    for (const char* unused : {".k_proj.weight", ".v_proj.weight", ".k_norm.weight"})
      source.skip(prefix + unused);
    return layers;
  }
  layers.push_back(
      load_rope_projection(source, prefix + ".k_proj", kv, model.hidden, order, bias, kv_rows));
  if (plan.values_are_keys) return layers;
  layers.push_back(load_projection(source, prefix + ".v_proj", kv, model.hidden, bias, kv_rows));
  return layers;
}

}  // namespace

Attention::Attention(const AttentionPlan& plan, const DecoderPlan& model, int layer,
                     const std::string& prefix, WeightSource& source)
    : plan_(plan.of_rank(source.share().ranks)),
      outputs_(plan.heads * plan.head_dim),
      norm_eps_(model.norm_eps),
      layer_(layer),
      qkv_(load_qkv(model, plan, prefix, source)),
      output_(source, prefix + ".o_proj", model.hidden, outputs_, plan.output_bias) {
  if (plan_.rope) rope_magnitude_ = model.ropes[static_cast<size_t>(*plan_.rope)].magnitude;
  if (plan_.sinks) {
    sinks_ = source.float_vector(prefix + ".sinks", plan.heads, own_heads(plan, source.share()).q);
  }
  if (!plan_.qk_norm) return;
  OCTAVO_CHECK(!plan_.interleaved_rope);  // the norm weights would have to be reordered too
  const auto load = [&](const char* name, int heads) {
    const int size = plan_.norms_rows ? heads * plan_.head_dim : plan_.head_dim;
    return source.norm(prefix + name, size, model.norm_offset);
  };
  q_norm_ = load(".q_norm.weight", plan_.heads);
  if (!plan_.shares_layer) k_norm_ = load(".k_norm.weight", plan_.kv_heads);
}

// The columns of the query heads of one KV head, which are never divided.
int Attention::group_width() const { return plan_.heads / plan_.kv_heads * plan_.head_dim; }

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
  if (plan_.rope) {
    options.inverse_frequencies = context.ropes[static_cast<size_t>(*plan_.rope)];
    options.rope_axes = context.rope_axes[static_cast<size_t>(*plan_.rope)];
  }
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
  const BatchLayout& layout = context.layout_of(plan_);
  const auto attend = [&](const mx::array& q, const KvPages& pages) {
    const mx::array attended = paged_attention(q, pages, layout, table,
                                               {.scale = plan_.scale,
                                                .window = plan_.window,
                                                .soft_cap = plan_.soft_cap,
                                                .sinks = sinks_});
    return mx::reshape(attended, {x.shape(0), width});
  };
  const auto write_and_attend = [&] {
    const auto [q, pages] =
        qkv_write(context.kv.layer(layer_), qkv, layout, table, qkv_options(context));
    context.kv.rebind(layer_, pages.bytes);
    return attend(q, pages);
  };
  mx::array attended =
      plan_.shares_layer ? attend(prepare_queries(qkv, layout, qkv_options(context), context.path),
                                  context.kv.layer(layer_))
                         : write_and_attend();
  if (plan_.output_gate)
    attended = gate_rows({attended}, {qkv}, width, Gate::kSigmoid, context.path);
  if (width < outputs_)
    attended = context.ranks->gather(attended, std::array{outputs_}, group_width());
  LinearOptions out;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  if (context.lora != nullptr) out.lora = context.lora->output(layer_);
  return output_.forward(attended, out, context.ranks);
}

}  // namespace octavo

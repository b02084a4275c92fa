#include "models/layers/mla.h"

#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/head_linear.h"
#include "kernels/latent_write.h"
#include "models/layers/projection.h"

namespace octavo {
namespace {

// Entry r: the row of the file that becomes row r. Each head has `plain` rows and `rope` rows,
// which the file stores as adjacent pairs and the rope kernel expects in halves.
std::vector<int> halves_order(int heads, int plain, int rope) {
  std::vector<int> order;
  for (int head = 0; head < heads; ++head) {
    const int first = head * (plain + rope);
    for (int i = 0; i < plain; ++i) order.push_back(first + i);
    for (int half = 0; half < 2; ++half) {
      for (int pair = 0; pair < rope / 2; ++pair) order.push_back(first + plain + 2 * pair + half);
    }
  }
  return order;
}

// Rows of a projection, `count` heads of `plain` rows each, followed by the rope dims. `own`: the heads
// to load; none stand for all of them.
struct HeadRows {
  int count;
  int plain;
  std::vector<int> own = {};
};

Projection load_heads(const MlaPlan& plan, HeadRows heads, int cols, bool biased,
                      const std::string& name, WeightSource& source) {
  const int rows = heads.count * (heads.plain + plan.rope_dim);
  std::vector<int> order;
  if (plan.rope_in_pairs) order = halves_order(heads.count, heads.plain, plan.rope_dim);
  order = picked_rows(order, rows_of_heads(heads.own, heads.plain + plan.rope_dim));
  return load_projection(source, name, rows, cols, biased, order);
}

std::vector<int> own_heads(const MlaPlan& plan, const WeightSource& source) {
  return source.share().picks(plan.heads, 1);
}

Projection load_queries(const MlaPlan& plan, int hidden, const std::string& prefix,
                        WeightSource& source) {
  const bool through_rank = plan.q_rank > 0;
  return load_heads(plan, {plan.heads, plan.nope_dim, own_heads(plan, source)},
                    through_rank ? plan.q_rank : hidden, false,
                    prefix + (through_rank ? ".q_b_proj" : ".q_proj"), source);
}

// The strips that hold rows [first, first + count) of each of the heads of `height` rows.
std::vector<int> strips_of_heads(std::span<const int> heads, int height, int first, int count) {
  std::vector<int> strips;
  for (const int head : heads) {
    for (int row = 0; row < count; row += kStripRows)
      strips.push_back((head * height + first + row) / kStripRows);
  }
  return strips;
}

// One matrix per head, as converted by mlx-lm: [heads, rows, cols], rows in whole strips. `own`: the
// heads to keep.
Weight load_stack(const std::string& module, int heads, int rows, int cols, WeightSource& source,
                  std::span<const int> own) {
  const std::vector<std::vector<int>> all_rows(1);
  ExpertStack stack = std::move(source.expert_stacks(module, {rows, cols, heads}, all_rows)[0]);
  PackedLayout layout = stack.layout;
  layout.rows *= heads;
  const Weight all{heads * rows, cols, layout, std::move(stack.packed)};
  return own.empty() ? all : take_strips(all, strips_of_heads(own, rows, 0, rows));
}

}  // namespace

Mla::LatentWeights Mla::load_latent(const MlaPlan& plan, DType dtype, const std::string& prefix,
                                    WeightSource& source) {
  const std::vector<int> own = own_heads(plan, source);
  if (source.has_matrix(prefix + ".embed_q")) {
    return {load_stack(prefix + ".embed_q", plan.heads, plan.kv_rank, plan.nope_dim, source, own),
            load_stack(prefix + ".unembed_out", plan.heads, plan.v_dim, plan.kv_rank, source, own)};
  }
  const int height = plan.nope_dim + plan.v_dim;
  const Weight both = source.matrix(prefix + ".kv_b_proj", plan.heads * height, plan.kv_rank,
                                    rows_of_heads(own, height));
  const int heads = plan.of_rank(source.share().ranks).heads;
  std::vector<int> loaded(static_cast<size_t>(heads));
  std::iota(loaded.begin(), loaded.end(), 0);
  const auto part = [&](int first, int count) {
    return take_strips(both, strips_of_heads(loaded, height, first, count));
  };
  const Weight keys = part(0, plan.nope_dim);
  const DType dense = keys.layout.bits == 0 ? keys.layout.dtype : dtype;
  return {transposed_heads(keys, heads, dense), part(plan.nope_dim, plan.v_dim)};
}

Mla::Mla(const MlaPlan& plan, const DecoderPlan& model, int layer, DType dtype,
         const std::string& prefix, WeightSource& source)
    : plan_(plan.of_rank(source.share().ranks)),
      outputs_(plan.heads * plan.v_dim),
      layer_(layer),
      rope_magnitude_(model.ropes[static_cast<size_t>(plan.rope)].magnitude),
      q_up_(load_queries(plan, model.hidden, prefix, source)),
      latent_(load_heads(plan, {1, plan.kv_rank}, model.hidden, plan.bias,
                         prefix + ".kv_a_proj_with_mqa", source)),
      latent_norm_(source.norm(prefix + ".kv_a_layernorm.weight", plan.kv_rank, model.norm_offset)),
      weights_(load_latent(plan, dtype, prefix, source)),
      output_(source, prefix + ".o_proj", model.hidden, outputs_, plan.bias) {
  if (plan.q_rank == 0) return;
  q_down_ = load_projection(source, prefix + ".q_a_proj", plan.q_rank, model.hidden, plan.bias);
  q_norm_ = NormSpec{source.norm(prefix + ".q_a_layernorm.weight", plan.q_rank, model.norm_offset),
                     plan.rank_eps};
}

mx::array Mla::queries(const mx::array& x, const Surroundings& around, KernelPath path) const {
  LinearOptions options;
  options.norm = around.norm;
  options.path = path;
  mx::array rows = x;
  if (q_down_) {
    options.bias = q_down_->bias;
    rows = linear(x, q_down_->weight, options);
    options.bias = std::nullopt;
    options.norm = q_norm_;
  }
  return mx::reshape(linear(rows, q_up_.weight, options), {x.shape(0), plan_.heads, plan_.q_dim()});
}

mx::array Mla::forward(const mx::array& x, const Surroundings& around,
                       ForwardContext& context) const {
  LinearOptions into;
  into.norm = around.norm;
  into.bias = latent_.bias;
  into.path = context.path;
  const LatentRows rows{queries(x, around, context.path), linear(x, latent_.weight, into)};

  const mx::array& table = context.table(layer_);
  const LatentOptions options{.norm = latent_norm_,
                              .norm_eps = plan_.rank_eps,
                              .inverse_frequencies = context.ropes[static_cast<size_t>(plan_.rope)],
                              .rope_magnitude = rope_magnitude_};
  const auto [q, pages] =
      latent_write(context.kv.layer(layer_), rows, weights_.keys, context.layout, table, options);
  context.kv.rebind(layer_, pages.bytes);
  const mx::array attended =
      paged_attention(q, pages, context.layout, table, {.scale = plan_.scale});
  const int width = plan_.heads * plan_.v_dim;
  mx::array values =
      mx::reshape(head_linear(attended, weights_.values, context.path), {x.shape(0), width});
  if (width < outputs_) values = context.ranks->gather(values, std::array{outputs_}, plan_.v_dim);

  LinearOptions out;
  if (around.add_input) out.residual = x;
  out.path = context.path;
  return output_.forward(values, out, context.ranks);
}

}  // namespace octavo

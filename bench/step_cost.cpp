#include "bench/step_cost.h"

#include <algorithm>

namespace octavo::bench {
namespace {

struct Rows {
  uint64_t sequences;
  uint64_t rows;        // of each sequence
  uint64_t start;       // cached before the step
  uint64_t logit_rows;  // over all sequences
};

uint64_t u64(int value) { return static_cast<uint64_t>(value); }

// Multiplications of one row with all matrices of a layer.
uint64_t layer_products(const LayerPlan& layer, int hidden) {
  const AttentionPlan& a = layer.attention;
  const uint64_t attention = u64(2 * a.heads + 2 * a.kv_heads) * u64(a.head_dim);
  return u64(hidden) * (attention + 3 * u64(layer.mlp.intermediate));
}

// Positions that rows [start, start + rows) see in all, themselves included.
uint64_t visible(const Rows& rows, int window) {
  uint64_t seen = 0;
  for (uint64_t position = rows.start; position < rows.start + rows.rows; ++position)
    seen += window > 0 ? std::min(position + 1, u64(window)) : position + 1;
  return seen;
}

StepCost step_cost(const ModelDescription& model, uint64_t weight_bytes, const Rows& rows,
                   KvFormat kv_format) {
  const DecoderPlan& plan = model.plan;
  const auto specs = plan.cache_specs(model.dtype, kv_format);
  StepCost cost{.weight_bytes = weight_bytes};
  uint64_t products = rows.logit_rows * u64(plan.vocab) * u64(plan.hidden);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const AttentionPlan& a = plan.layers[i].attention;
    products += rows.sequences * rows.rows * layer_products(plan.layers[i], plan.hidden);
    // Each query head meets each visible position twice: q k and p v.
    products += rows.sequences * visible(rows, a.window) * 2 * u64(a.heads) * u64(a.head_dim);
    // The first row sees the farthest back.
    const uint64_t reach = a.window > 0 ? std::min(rows.start, u64(a.window) - 1) : rows.start;
    cost.kv_bytes += rows.sequences * (reach + rows.rows) * specs[i].bytes_per_token();
  }
  cost.flops = 2 * products;
  return cost;
}

}  // namespace

double StepCost::limit_seconds(const StepLimits& machine) const {
  if (machine.read_gbps <= 0 || machine.matrix_tflops <= 0) return 0;
  return std::max(static_cast<double>(bytes()) / (machine.read_gbps * 1e9),
                  static_cast<double>(flops) / (machine.matrix_tflops * 1e12));
}

StepCost& StepCost::operator+=(const StepCost& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  flops += other.flops;
  return *this;
}

uint64_t step_weight_bytes(const Checkpoint& checkpoint, const DecoderPlan& plan) {
  uint64_t bytes = 0;
  for (const TensorView& tensor : checkpoint.tensors()) {
    const bool embedding =
        tensor.name.starts_with("model.embed_tokens.") || tensor.name == "token_embd.weight";
    const bool head = tensor.name.starts_with("lm_head.") || tensor.name == "output.weight";
    if (plan.tied_embeddings ? head : embedding) continue;
    bytes += tensor.bytes.size();
  }
  return bytes;
}

StepCost decode_cost(const ModelDescription& model, uint64_t weight_bytes, int sequences,
                     int context, KvFormat kv_format) {
  return step_cost(model, weight_bytes,
                   {.sequences = u64(sequences),
                    .rows = 1,
                    .start = u64(context - 1),
                    .logit_rows = u64(sequences)},
                   kv_format);
}

StepCost prefill_cost(const ModelDescription& model, uint64_t weight_bytes, int start, int rows,
                      bool with_logits, KvFormat kv_format) {
  return step_cost(model, weight_bytes,
                   {.sequences = 1,
                    .rows = u64(rows),
                    .start = u64(start),
                    .logit_rows = u64(with_logits ? 1 : 0)},
                   kv_format);
}

}  // namespace octavo::bench

#include "bench/step_cost.h"

#include <algorithm>

#include "base/overloaded.h"
#include "base/widen.h"
#include "models/checkpoint_fit.h"

namespace octavo::bench {
namespace {

struct Rows {
  uint64_t sequences;
  uint64_t rows;        // of each sequence
  uint64_t start;       // cached before the step
  uint64_t logit_rows;  // over all sequences
};

// The cost of a mixer in a step.
struct MixerWork {
  uint64_t products = 0;
  uint64_t cache_bytes = 0;
};

// Total number of positions visible to rows [start, start + rows), themselves included.
uint64_t visible(const Rows& rows, int window) {
  uint64_t seen = 0;
  for (uint64_t position = rows.start; position < rows.start + rows.rows; ++position)
    seen += window > 0 ? std::min(position + 1, widen(window)) : position + 1;
  return seen;
}

MixerWork attention_work(const AttentionPlan& a, const SoftmaxSpec& spec, int hidden,
                         const Rows& rows) {
  const int columns = (a.output_gate ? 3 : 2) * a.heads + 2 * a.kv_heads;
  const uint64_t matrices = widen(hidden) * widen(columns) * widen(a.head_dim);
  // Each query head uses each visible position twice: q k and p v.
  const uint64_t scores = visible(rows, a.window) * 2 * widen(a.heads) * widen(a.head_dim);
  // The first row sees the oldest positions.
  const uint64_t reach = a.window > 0 ? std::min(rows.start, widen(a.window) - 1) : rows.start;
  return {rows.sequences * (rows.rows * matrices + scores),
          rows.sequences * (reach + rows.rows) * spec.bytes_per_token()};
}

MixerWork mla_work(const MlaPlan& a, const SoftmaxSpec& spec, int hidden, const Rows& rows) {
  // Each query head uses each visible row twice: all of it, and its latent.
  const uint64_t scores = visible(rows, 0) * widen(a.heads) * widen(a.latent_dim() + a.kv_rank);
  return {rows.sequences * (rows.rows * a.parameters(hidden) + scores),
          rows.sequences * (rows.start + rows.rows) * spec.bytes_per_token()};
}

MixerWork delta_work(const GatedDeltaPlan& d, const StateSpec& spec, int hidden, const Rows& rows) {
  const uint64_t values = widen(d.value_heads) * widen(d.v_dim);
  const uint64_t matrices =
      widen(hidden) * (widen(d.conv_channels()) + 2 * values + 2 * widen(d.value_heads));
  // Decay, S k, the update and S q: seven operations per element of a state.
  const uint64_t state = widen(d.value_heads) * widen(d.k_dim) * widen(d.v_dim) * 7 / 2;
  // A state is read and written once, regardless of the number of rows.
  return {rows.sequences * rows.rows * (matrices + state), 2 * rows.sequences * spec.bytes()};
}

MixerWork mamba_work(const Mamba2Plan& m, const StateSpec& spec, int hidden, const Rows& rows) {
  const uint64_t matrices = widen(hidden) * (2 * widen(m.values()) + widen(m.conv_channels()));
  // Decay, the update and S c: five operations per element of a state.
  const uint64_t state = widen(m.values()) * widen(m.state_dim) * 5 / 2;
  return {rows.sequences * rows.rows * (matrices + state), 2 * rows.sequences * spec.bytes()};
}

MixerWork conv_work(const ShortConvPlan& c, const StateSpec& spec, int hidden, const Rows& rows) {
  return {rows.sequences * rows.rows * c.parameters(hidden), 2 * rows.sequences * spec.bytes()};
}

// One expert, or all experts of a layer in one tensor.
bool is_expert(const std::string& name) {
  for (const char* part : {".experts.", ".switch_mlp.", "_exps.", ".block_sparse_moe.input_linear",
                           ".block_sparse_moe.output_linear"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

uint64_t ffn_products(const LayerPlan& layer, int hidden) {
  if (const auto* both = std::get_if<DenseAndExpertsPlan>(&layer.ffn))
    return both->active_parameters(hidden);
  if (layer.moe() != nullptr) return layer.moe()->active_parameters(hidden);
  return std::visit([&](const auto& ffn) { return ffn.parameters(hidden); }, layer.ffn);
}

StepCost step_cost(const ModelDescription& model, uint64_t weight_bytes, const Rows& rows,
                   KvFormat kv_format) {
  const DecoderPlan& plan = model.plan;
  const auto specs = plan.cache_specs(model.dtype, kv_format);
  StepCost cost{.weight_bytes = weight_bytes};
  uint64_t products = rows.logit_rows * widen(plan.vocab) * widen(plan.hidden);
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const MixerWork work = std::visit(
        Overloaded{
            [&](const AttentionPlan& a) {
              const size_t owner = a.shares_layer ? static_cast<size_t>(*a.shares_layer) : i;
              return attention_work(a, std::get<SoftmaxSpec>(specs[owner]), plan.hidden, rows);
            },
            [&](const MlaPlan& a) {
              return mla_work(a, std::get<SoftmaxSpec>(specs[i]), plan.hidden, rows);
            },
            [&](const ShortConvPlan& c) {
              return conv_work(c, std::get<StateSpec>(specs[i]), plan.hidden, rows);
            },
            [&](const Mamba2Plan& m) {
              return mamba_work(m, std::get<StateSpec>(specs[i]), plan.hidden, rows);
            },
            [](const AbsentPlan&) { return MixerWork{}; },
            [&](const GatedDeltaPlan& d) {
              return delta_work(d, std::get<StateSpec>(specs[i]), plan.hidden, rows);
            },
        },
        plan.layers[i].mixer);
    products += work.products;
    cost.kv_bytes += work.cache_bytes;
    products += rows.sequences * rows.rows * ffn_products(plan.layers[i], plan.hidden);
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

uint64_t StepWeights::read_by(uint64_t tokens) const {
  if (!moe) return always;
  return always + static_cast<uint64_t>(static_cast<double>(experts) * moe->expected_share(tokens));
}

StepWeights step_weights(const Checkpoint& checkpoint, const DecoderPlan& plan) {
  StepWeights weights;
  for (const auto& layer : plan.layers)
    if (layer.moe() != nullptr) weights.moe = *layer.moe();
  for (const TensorView& tensor : checkpoint.tensors()) {
    if (!reads_tensor(plan, checkpoint, tensor.name)) continue;
    const bool embedding =
        tensor.name.starts_with(plan.tensor("embed_tokens.")) || tensor.name == "token_embd.weight";
    const bool head =
        tensor.name.starts_with(plan.head_name + ".") || tensor.name == "output.weight";
    if (plan.tied_embeddings ? head : embedding) continue;
    (is_expert(tensor.name) ? weights.experts : weights.always) += tensor.bytes.size();
  }
  return weights;
}

StepCost decode_cost(const ModelDescription& model, uint64_t weight_bytes, int sequences,
                     int context, KvFormat kv_format) {
  return step_cost(model, weight_bytes,
                   {.sequences = widen(sequences),
                    .rows = 1,
                    .start = widen(context - 1),
                    .logit_rows = widen(sequences)},
                   kv_format);
}

StepCost prefill_cost(const ModelDescription& model, uint64_t weight_bytes, int start, int rows,
                      bool with_logits, KvFormat kv_format) {
  return step_cost(model, weight_bytes,
                   {.sequences = 1,
                    .rows = widen(rows),
                    .start = widen(start),
                    .logit_rows = widen(with_logits ? 1 : 0)},
                   kv_format);
}

}  // namespace octavo::bench

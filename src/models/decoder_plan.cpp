#include "models/decoder_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/overloaded.h"
#include "base/widen.h"

namespace octavo {
namespace {

int norms_of(const HalfPlan& half) {
  return !half.norm_in.empty() + !half.norm_out.empty() + !half.norm_after.empty();
}

uint64_t norm_parameters(const DecoderPlan& plan) {
  return widen(plan.hidden) * (plan.norm_bias ? 2 : 1);
}

uint64_t layer_parameters(const LayerPlan& layer, const DecoderPlan& plan) {
  const int hidden = plan.hidden;
  const auto of = [&](const auto& part) { return part.parameters(hidden); };
  return std::visit(of, layer.mixer) + std::visit(of, layer.ffn) +
         norm_parameters(plan) * widen(norms_of(layer.mixer_half) + norms_of(layer.ffn_half)) +
         (layer.scalar.empty() ? 0 : 1);
}

uint64_t encoder_parameters(const EncoderPlan& encoder, const DecoderPlan& plan) {
  return widen(plan.hidden) * (widen(encoder.position_rows) + widen(encoder.type_rows)) +
         (encoder.norm.empty() ? 0 : norm_parameters(plan));
}

uint64_t score_parameters(const ScoreHeadPlan& score, int hidden) {
  const uint64_t width = widen(hidden);
  uint64_t count = 0;
  if (!score.dense.empty()) count += width * width + (score.dense_bias ? width : 0);
  if (!score.norm.empty()) count += width * (score.norm_bias ? 2 : 1);
  if (score.rows.empty()) count += widen(score.labels) * (width + (score.out_bias ? 1 : 0));
  return count;
}

// Intermediate elements per row: the results of the two sublayers; a norm or scale after a sublayer
// also keeps its input.
uint64_t layer_row_elements(const LayerPlan& layer, const DecoderPlan& plan) {
  const int hidden = plan.hidden;
  const Overloaded of{[](const auto& part) { return part.row_elements(); },
                      [&](const MoePlan& part) { return part.row_elements(hidden); },
                      [&](const DenseAndExpertsPlan& part) { return part.row_elements(hidden); }};
  const auto kept = [&](const HalfPlan& half) {
    return plan.residual_scale != 1 || !half.norm_out.empty() || !half.norm_after.empty();
  };
  const int sums = 2 + kept(layer.mixer_half) + kept(layer.ffn_half);
  return widen(sums) * widen(hidden) + std::visit(of, layer.mixer) + std::visit(of, layer.ffn);
}

// `what`: "KV head".
void check_heads(int heads, const char* what, int ranks) {
  if (heads >= ranks) return;
  const std::string other =
      heads > 1 ? fmt::format("--tensor-parallel-size {} or less, or ", heads) : std::string();
  throw SetupError(fmt::format(
      "--tensor-parallel-size {}: a layer of this model has {} {}{}, and a head cannot be divided; "
      "use {}--pipeline-parallel-size {}",
      ranks, heads, what, heads == 1 ? "" : "s", other, ranks));
}

}  // namespace

const MoePlan* LayerPlan::moe() const {
  if (const auto* both = std::get_if<DenseAndExpertsPlan>(&ffn)) return &both->experts;
  return std::get_if<MoePlan>(&ffn);
}

std::vector<CacheSpec> DecoderPlan::cache_specs(DType dtype, KvFormat format) const {
  std::vector<CacheSpec> specs;
  const auto of = [&](const auto& mixer) { return mixer.cache_spec(dtype, format); };
  for (const auto& layer : layers) specs.push_back(std::visit(of, layer.mixer));
  if (mtp) specs.push_back(std::visit(of, mtp->layer.mixer));
  return specs;
}

DecoderPlan DecoderPlan::of_rank(int ranks) const {
  DecoderPlan part = *this;
  const auto divide = [&](LayerPlan& layer) {
    if (auto* attention = std::get_if<AttentionPlan>(&layer.mixer)) {
      if (!attention->norms_rows) check_heads(attention->kv_heads, "KV head", ranks);
      *attention = attention->of_rank(ranks);
    } else if (auto* mla = std::get_if<MlaPlan>(&layer.mixer)) {
      check_heads(mla->heads, "head", ranks);
      *mla = mla->of_rank(ranks);
    }
  };
  for (LayerPlan& layer : part.layers) divide(layer);
  if (part.mtp) divide(part.mtp->layer);
  return part;
}

uint64_t DecoderPlan::parameters() const {
  const bool has_head = !tied_embeddings && !head_name.empty();
  uint64_t count = widen(vocab) * widen(hidden) * (has_head ? 2 : 1);
  if (!final_norm.empty()) count += norm_parameters(*this);
  for (const auto& layer : layers) count += layer_parameters(layer, *this);
  if (encoder) count += encoder_parameters(*encoder, *this);
  if (score) count += score_parameters(*score, hidden);
  if (mtp) {
    count +=
        layer_parameters(mtp->layer, *this) + 2 * widen(hidden) * widen(hidden) + 3 * widen(hidden);
  }
  if (per_layer_input) count += per_layer_input->parameters(hidden, layers.size());
  return count;
}

uint64_t DecoderPlan::decoded_bytes(DType dtype) const {
  uint64_t bytes = 0;
  const auto add = [&](const LayerPlan& layer) {
    if (const auto* mla = std::get_if<MlaPlan>(&layer.mixer)) bytes += mla->decoded_bytes(dtype);
  };
  for (const auto& layer : layers) add(layer);
  if (mtp) add(mtp->layer);
  return bytes;
}

std::vector<uint64_t> DecoderPlan::row_elements() const {
  std::vector<uint64_t> elements;
  for (const auto& layer : layers) {
    elements.push_back(layer_row_elements(layer, *this));
    if (per_layer_input) elements.back() += per_layer_input->row_elements(hidden);
  }
  // The final rows, the embeddings, both normed, joined and projected.
  if (mtp) elements.push_back(layer_row_elements(mtp->layer, *this) + 7 * widen(hidden));
  // Rows of the three tables, two sums and their norm.
  if (encoder) elements.push_back(6 * widen(hidden));
  if (per_layer_input) elements.push_back(per_layer_input->shared_row_elements(layers.size()));
  return elements;
}

uint64_t DecoderPlan::widest_input() const {
  uint64_t widest = widen(hidden) * (mtp ? 2 : 1);
  const auto of = [&](const auto& part) { return part.widest_input(hidden); };
  for (const auto& layer : layers)
    widest = std::max({widest, std::visit(of, layer.mixer), std::visit(of, layer.ffn)});
  return widest;
}

}  // namespace octavo

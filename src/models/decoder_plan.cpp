#include "models/decoder_plan.h"

#include <algorithm>

#include "base/overloaded.h"
#include "base/widen.h"

namespace octavo {
namespace {

int norms_of(const HalfPlan& half) { return !half.norm_in.empty() + !half.norm_out.empty(); }

}  // namespace

const MoePlan* LayerPlan::moe() const {
  if (const auto* both = std::get_if<DenseAndExpertsPlan>(&ffn)) return &both->experts;
  return std::get_if<MoePlan>(&ffn);
}

std::vector<CacheSpec> DecoderPlan::cache_specs(DType dtype, KvFormat format) const {
  std::vector<CacheSpec> specs;
  for (const auto& layer : layers) {
    specs.push_back(std::visit([&](const auto& mixer) { return mixer.cache_spec(dtype, format); },
                               layer.mixer));
  }
  return specs;
}

uint64_t DecoderPlan::parameters() const {
  const bool has_head = !tied_embeddings && !head_name.empty();
  uint64_t count = widen(vocab) * widen(hidden) * (has_head ? 2 : 1) + widen(hidden);
  const auto of = [&](const auto& part) { return part.parameters(hidden); };
  for (const auto& layer : layers) {
    count += std::visit(of, layer.mixer) + std::visit(of, layer.ffn) +
             widen(hidden) * widen(norms_of(layer.mixer_half) + norms_of(layer.ffn_half)) +
             (layer.scalar.empty() ? 0 : 1);
  }
  if (per_layer_input) count += per_layer_input->parameters(hidden, layers.size());
  return count;
}

uint64_t DecoderPlan::decoded_bytes(DType dtype) const {
  uint64_t bytes = 0;
  for (const auto& layer : layers) {
    if (const auto* mla = std::get_if<MlaPlan>(&layer.mixer)) bytes += mla->decoded_bytes(dtype);
  }
  return bytes;
}

std::vector<uint64_t> DecoderPlan::row_elements() const {
  std::vector<uint64_t> elements;
  const Overloaded of{[](const auto& part) { return part.row_elements(); },
                      [&](const MoePlan& part) { return part.row_elements(hidden); },
                      [&](const DenseAndExpertsPlan& part) { return part.row_elements(hidden); }};
  for (const auto& layer : layers) {
    // The results of the two sublayers; a norm or scale after a sublayer also keeps its input.
    const auto kept = [&](const HalfPlan& half) {
      return residual_scale != 1 || !half.norm_out.empty();
    };
    const int sums = 2 + kept(layer.mixer_half) + kept(layer.ffn_half);
    elements.push_back(widen(sums) * widen(hidden) + std::visit(of, layer.mixer) +
                       std::visit(of, layer.ffn));
    if (per_layer_input) elements.back() += per_layer_input->row_elements(hidden);
  }
  if (per_layer_input) elements.push_back(per_layer_input->shared_row_elements(layers.size()));
  return elements;
}

uint64_t DecoderPlan::widest_input() const {
  uint64_t widest = widen(hidden);
  const auto of = [&](const auto& part) { return part.widest_input(hidden); };
  for (const auto& layer : layers)
    widest = std::max({widest, std::visit(of, layer.mixer), std::visit(of, layer.ffn)});
  return widest;
}

}  // namespace octavo

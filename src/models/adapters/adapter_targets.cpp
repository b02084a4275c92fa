#include "models/adapters/adapter_targets.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/overloaded.h"
#include "models/row_orders.h"

namespace octavo {
namespace {

class TargetBuilder {
 public:
  explicit TargetBuilder(const DecoderPlan& plan) : plan_(plan) {
    targets_.prefix = plan.prefix.empty() ? "" : plan.prefix + ".";
  }

  AdapterTargets build() {
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const LayerPlan& layer = plan_.layers[i];
      own_ = &targets_.layers.emplace_back();
      const std::string at = fmt::format("layers.{}.", i);
      if (const auto* plan = std::get_if<AttentionPlan>(&layer.mixer))
        add_attention(*plan, at + layer.mixer_name + ".");
      if (const auto* plan = std::get_if<MlpPlan>(&layer.ffn))
        add_mlp(*plan, at + layer.ffn_name + ".");
    }
    add_vocabulary();
    return std::move(targets_);
  }

 private:
  void add_vocabulary() {
    targets_.embedding_name = name_of_module("embed_tokens");
    targets_.head_name = name_of_module(plan_.head_name);
    targets_.embedding = add("embed_tokens", plan_.hidden, plan_.vocab);
    targets_.modules.at(targets_.embedding_name).is_table = true;
    if (plan_.tied_embeddings) {
      targets_.head = targets_.embedding;
    } else if (!plan_.head_name.empty()) {
      targets_.head = add(kHeadModule, plan_.hidden, plan_.vocab);
    }
  }

  void add_attention(const AttentionPlan& plan, const std::string& at) {
    const int q = plan.heads * plan.head_dim;
    const int kv = plan.kv_heads * plan.head_dim;
    own_->output = add(at + "o_proj", q, plan_.hidden);
    if (plan.fused_qkv) {
      own_->qkv = {add(at + "qkv_proj", plan_.hidden, q + 2 * kv)};
      return;
    }
    own_->qkv = {plan.output_gate ? add(at + "q_proj", plan_.hidden, 2 * q, gates_first(plan))
                                  : add(at + "q_proj", plan_.hidden, q, order_of(plan, q))};
    if (plan.shares_layer) return;
    own_->qkv.push_back(add(at + "k_proj", plan_.hidden, kv, order_of(plan, kv)));
    if (!plan.values_are_keys) own_->qkv.push_back(add(at + "v_proj", plan_.hidden, kv));
  }

  // Adapters have the rows of q and k as Hugging Face orders them, whatever the order in the
  // model's own file is.
  std::vector<int> order_of(const AttentionPlan& plan, int rows) const {
    if (!plan.interleaved_rope) return {};
    const RopePlan& rope = plan_.ropes[static_cast<size_t>(*plan.rope)];
    return rope_row_order(rows, plan.head_dim,
                          2 * static_cast<int>(rope.inverse_frequencies.size()));
  }

  void add_mlp(const MlpPlan& plan, const std::string& at) {
    const int width = plan.intermediate;
    own_->up = add(at + "up_proj", plan_.hidden, width);
    own_->down = add(at + "down_proj", width, plan_.hidden);
    if (!plan.gated) return;
    own_->gate = add(at + "gate_proj", plan_.hidden, width);
    if (!plan.fused) return;
    // Converters may split the matrix, so adapters may name the whole or its halves.
    const auto half = [&](int first) {
      std::vector<int> rows(static_cast<size_t>(width));
      std::iota(rows.begin(), rows.end(), first);
      return rows;
    };
    targets_.modules[name_of_module(at + "gate_up_proj")] = {
        plan_.hidden, 2 * width, {{own_->gate, half(0)}, {own_->up, half(width)}}};
  }

  int add(const std::string& module, int inputs, int outputs, std::vector<int> order = {}) {
    const auto index = static_cast<int>(targets_.projections.size());
    targets_.projections.push_back({inputs, outputs});
    targets_.modules[name_of_module(module)] = {inputs, outputs, {{index, std::move(order)}}};
    return index;
  }

  std::string name_of_module(const std::string& name) const { return renamed(name, plan_.renames); }

  const DecoderPlan& plan_;
  AdapterTargets targets_;
  LayerTargets* own_ = nullptr;
};

std::string mixer_kind(const LayerPlan& layer) {
  return std::visit(Overloaded{
                        [](const AttentionPlan&) { return ""; },
                        [](const GatedDeltaPlan&) { return "gated delta layers"; },
                        [](const Mamba2Plan&) { return "Mamba-2 layers"; },
                        [](const MlaPlan&) { return "latent attention (MLA)"; },
                        [](const ShortConvPlan&) { return "short convolutions"; },
                        [](const AbsentPlan&) { return ""; },
                    },
                    layer.mixer);
}

}  // namespace

AdapterTargets adapter_targets(const DecoderPlan& plan) { return TargetBuilder(plan).build(); }

std::string AdapterTargets::local_name(const std::string& full_name) const {
  if (full_name == kHeadModule || (!head_name.empty() && full_name == head_name))
    return kHeadModule;
  // Multimodal models have the language model under different names in each version.
  for (const std::string& known :
       {prefix, std::string("model.language_model."), std::string("language_model.model."),
        std::string("model."), std::string()}) {
    if (!full_name.starts_with(known)) continue;
    const std::string local = full_name.substr(known.size());
    if (local.starts_with("layers.") || local == embedding_name) return local;
  }
  return "";
}

std::string why_not_adapted(const DecoderPlan& plan, const std::string& module) {
  if (module == kHeadModule)
    return plan.tied_embeddings ? "the output matrix of this model is its embeddings, so it is not "
                                  "clear whether the "
                                  "adapter changes both"
                                : "an embedding model has no output matrix";
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const LayerPlan& layer = plan.layers[i];
    const std::string at = fmt::format("layers.{}.", i);
    if (!module.starts_with(at)) continue;
    const std::string mixer = mixer_kind(layer);
    if (!mixer.empty() && module.starts_with(at + layer.mixer_name + "."))
      return fmt::format("LoRA is not supported in {}", mixer);
    const bool experts = layer.moe() != nullptr || module.find("expert") != std::string::npos;
    if (experts && !module.starts_with(at + layer.mixer_name + "."))
      return "LoRA is not supported in layers with experts";
    return "this layer has no such linear module";
  }
  return fmt::format("the model has {} layers", plan.layers.size());
}

}  // namespace octavo

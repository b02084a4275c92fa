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
  TargetBuilder(const DecoderPlan& plan, AdaptedExperts experts) : plan_(plan) {
    targets_.experts = experts;
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
      if (const auto* plan = std::get_if<MoePlan>(&layer.ffn))
        add_moe(*plan, at + layer.ffn_name + ".");
      if (const auto* plan = std::get_if<DenseAndExpertsPlan>(&layer.ffn))
        add_dense_and_experts(*plan, at);
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

  void add_moe(const MoePlan& plan, const std::string& at) {
    own_->router = add(at + plan.names.router, plan_.hidden, plan.choice.experts);
    if (plan.shared_gate) own_->shared_gate = add(at + plan.names.shared_gate, plan_.hidden, 1);
    if (plan.shared_intermediate > 0) add_mlp(plan.shared_mlp(), at + plan.names.shared + ".");
    add_experts(plan, at);
  }

  // Directly in the layer.
  void add_dense_and_experts(const DenseAndExpertsPlan& plan, const std::string& at) {
    add_mlp(plan.dense, at + "mlp.");
    own_->router = add(at + "router.proj", plan_.hidden, plan.experts.choice.experts);
    add_experts(plan.experts, at);
  }

  void add_experts(const MoePlan& plan, const std::string& at) {
    if (targets_.experts == AdaptedExperts::kNone) return;
    const MoeNames& names = plan.names;
    const int inner = plan.intermediate;
    const std::string stack = at + names.stack + ".";
    const ExpertModules modules{plan.choice, at + names.experts};
    own_->expert_up = add_expert_projection(modules, stack + (plan.gated ? "up_proj" : "fc1"),
                                            names.expert_up, plan_.hidden, inner);
    own_->expert_down = add_expert_projection(modules, stack + (plan.gated ? "down_proj" : "fc2"),
                                              names.expert_down, inner, plan_.hidden);
    own_->expert_gate = plan.gated ? add_expert_projection(modules, stack + "gate_proj",
                                                           names.expert_gate, plan_.hidden, inner)
                                   : own_->expert_up;
  }

  struct ExpertModules {
    const ExpertChoice& choice;
    std::string experts;  // the module of expert 7 is below "<experts>.7"
  };

  // `stack`: mlx-lm's module of all experts; `name`: of the published module below an expert's number.
  int add_expert_projection(const ExpertModules& modules, const std::string& stack,
                            const std::string& name, int inputs, int outputs) {
    const int index = add(stack, inputs, outputs);
    const int experts = modules.choice.experts;
    targets_.projections.back().experts = experts;
    targets_.projections.back().top_k = modules.choice.top_k;
    AdapterModule& whole = targets_.modules.at(name_of_module(stack));
    whole.experts = experts;
    whole.parts.clear();
    for (int e = 0; e < experts; ++e) {
      whole.parts.push_back({.projection = index, .expert = e});
      const std::string own = fmt::format("{}.{}.{}", modules.experts, e, name);
      targets_.modules[name_of_module(own)] = {
          inputs, outputs, {{.projection = index, .expert = e}}};
    }
    return index;
  }

  int add(const std::string& module, int inputs, int outputs, std::vector<int> order = {}) {
    const auto index = static_cast<int>(targets_.projections.size());
    targets_.projections.push_back({.inputs = inputs, .outputs = outputs});
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

// Whether the module is one of the experts, or all of them.
bool names_experts(const MoePlan& plan, const std::string& module) {
  return module.find("." + plan.names.stack) != std::string::npos ||
         (module + ".").find("." + plan.names.experts + ".") != std::string::npos;
}

std::string why_not_expert(const AdapterTargets& targets, const std::string& module, LoraUse use) {
  // PEFT's target_parameters: "mlp.experts", and "mlp.experts.base_layer" for the second parameter.
  if (module.ends_with(".experts") || module.ends_with(".base_layer"))
    return "adapters of fused expert parameters (PEFT's target_parameters) are not supported, only "
           "those of each expert's linear modules";
  if (use == LoraUse::kMerge)
    return "adapters of experts are not merged; serve the adapter with --enable-lora and "
           "--lora-experts";
  if (targets.experts == AdaptedExperts::kAll) return "the experts have no such linear module";
  return "LoRA on experts is off, because it takes much memory; start with --lora-experts";
}

}  // namespace

AdapterTargets adapter_targets(const DecoderPlan& plan, AdaptedExperts experts) {
  return TargetBuilder(plan, experts).build();
}

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

std::string why_not_adapted(const DecoderPlan& plan, const AdapterTargets& targets,
                            const std::string& module, LoraUse use) {
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
    if (const MoePlan* moe = layer.moe(); moe != nullptr && names_experts(*moe, module))
      return why_not_expert(targets, module, use);
    return "this layer has no such linear module";
  }
  return fmt::format("the model has {} layers", plan.layers.size());
}

}  // namespace octavo

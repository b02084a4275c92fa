#include "models/families/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest_names.h"

namespace octavo {
namespace {

struct Family {
  const char* model_type;
  DecoderPlan (*plan)(const Config&);
};

constexpr auto kFamilies = std::to_array<Family>({
    {"bert", plan_bert},
    {"deepseek_v2", plan_deepseek_v2},
    {"deepseek_v3", plan_deepseek_v3},
    {"gemma2", plan_gemma2},
    {"gemma3", plan_gemma3},
    {"gemma3_text", plan_gemma3},
    {"gemma4", plan_gemma4},
    {"gemma4_text", plan_gemma4},
    {"glm4", plan_glm4},
    {"glm4_moe", plan_glm4_moe},
    {"glm4_moe_lite", plan_glm4_moe_lite},
    {"gpt_oss", plan_gpt_oss},
    {"granite", plan_granite},
    {"granitemoehybrid", plan_granitemoehybrid},
    {"lfm2", plan_lfm2},
    {"lfm2_moe", plan_lfm2_moe},
    {"llama", plan_llama},
    {"minicpm3", plan_minicpm3},
    {"ministral3", plan_mistral},
    {"mistral", plan_mistral},
    {"mistral3", plan_mistral},
    {"mixtral", plan_mixtral},
    {"modernbert", plan_modernbert},
    {"nemotron_h", plan_nemotron_h},
    {"nomic_bert", plan_nomic_bert},
    {"olmo2", plan_olmo2},
    {"olmo3", plan_olmo3},
    {"phi3", plan_phi3},
    {"qwen2", plan_qwen2},
    {"qwen2_moe", plan_qwen2_moe},
    {"qwen3", plan_qwen3},
    {"qwen3_5", plan_qwen3_5},
    {"qwen3_5_moe", plan_qwen3_5},
    {"qwen3_5_moe_text", plan_qwen3_5},
    {"qwen3_5_text", plan_qwen3_5},
    {"qwen3_moe", plan_qwen3_moe},
    {"qwen3_next", plan_qwen3_next},
    {"qwen3_vl", plan_qwen3_vl},
    {"qwen3_vl_moe", plan_qwen3_vl_moe},
    {"qwen3_vl_moe_text", plan_qwen3_vl_moe},
    {"qwen3_vl_text", plan_qwen3_vl},
    {"roberta", plan_roberta},
    {"smollm3", plan_smollm3},
    {"xlm-roberta", plan_xlm_roberta},
});

constexpr auto kEncoders =
    std::to_array<std::string_view>({"bert", "modernbert", "nomic_bert", "roberta", "xlm-roberta"});

// A mixture of experts may have no intermediate_size, unless one of its layers is dense.
void require_widths(const Config& config, const DecoderPlan& plan) {
  for (const LayerPlan& layer : plan.layers) {
    if (const auto* mlp = std::get_if<MlpPlan>(&layer.ffn);
        mlp != nullptr && mlp->intermediate == 0)
      config.fail("intermediate_size", "is missing");
  }
}

}  // namespace

bool is_encoder_type(std::string_view model_type) {
  return std::ranges::find(kEncoders, model_type) != kEncoders.end();
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const auto& family : kFamilies) types.emplace_back(family.model_type);
  return types;
}

DecoderPlan plan_model(const Config& config) {
  const std::string type = config.text("model_type");
  for (const auto& family : kFamilies) {
    if (type != family.model_type) continue;
    DecoderPlan plan = family.plan(config);
    require_widths(config, plan);
    plan.quantization = read_quantization(config);
    return plan;
  }
  const auto known = known_model_types();
  throw SetupError(fmt::format(
      "{}: model_type \"{}\" is not supported; supported types, closest first: {}. "
      "See docs/adding-a-model.md to add one.",
      config.origin(), type, fmt::join(nearest_names(type, known, known.size()), ", ")));
}

}  // namespace octavo

// Granite 4 and Nemotron-H.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json granite_hybrid(const Json& changes = Json::object()) {
  Json json = {{"model_type", "granitemoehybrid"},
               {"vocab_size", 128},
               {"hidden_size", 64},
               {"intermediate_size", 32},
               {"shared_intermediate_size", 48},
               {"num_hidden_layers", 2},
               {"num_attention_heads", 4},
               {"num_local_experts", 8},
               {"num_experts_per_tok", 2},
               {"layer_types", {"mamba", "attention"}},
               {"mamba_n_heads", 8},
               {"mamba_d_head", 16},
               {"mamba_d_state", 32}};
  json.update(changes);
  return json;
}

Json nemotron(const Json& changes = Json::object()) {
  Json json = {{"model_type", "nemotron_h"},
               {"vocab_size", 128},
               {"hidden_size", 64},
               {"intermediate_size", 96},
               {"hybrid_override_pattern", "M-*E"},
               {"num_attention_heads", 4},
               {"layer_norm_epsilon", 1e-5},
               {"mamba_num_heads", 4},
               {"mamba_head_dim", 16},
               {"ssm_state_size", 32},
               {"n_groups", 2},
               {"n_routed_experts", 8},
               {"num_experts_per_tok", 2},
               {"moe_intermediate_size", 32}};
  json.update(changes);
  return json;
}

TEST(GraniteHybrid, LayersAreMambaOrAttention) {
  const DecoderPlan plan = plan_of(granite_hybrid());
  const auto& mamba = std::get<Mamba2Plan>(plan.layers[0].mixer);
  EXPECT_EQ(mamba.conv_channels(), 128 + 2 * 32);
  EXPECT_TRUE(mamba.conv_bias);
  EXPECT_FALSE(plan.layers[1].attention().rope.has_value());
  EXPECT_EQ(plan.layers[0].moe()->shared_intermediate, 48);
  const DecoderPlan rope =
      plan_of(granite_hybrid({{"position_embedding_type", "rope"},
                              {"layer_types", {"linear_attention", "full_attention"}}}));
  EXPECT_TRUE(rope.layers[1].attention().rope.has_value());
  EXPECT_EQ(plan_of(granite_hybrid({{"num_local_experts", 0}})).layers[0].mlp().intermediate, 48);
}

TEST(GraniteHybrid, RefusesWhatItCannotCompute) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {{{"layer_types", {"mamba", "mamba"}}}, "no attention layer"},
      {{{"layer_types", {"mamba", "rwkv"}}}, "rwkv"},
      {{{"layer_types", {"mamba"}}}, "layer_types"},
      {{{"mamba_d_head", 24}}, "mamba_d_head"},
      {{{"mamba_d_state", 512}}, "mamba_d_state"},
      {{{"mamba_n_groups", 3}}, "mamba_n_groups"},
      {{{"mamba_expand", 3}}, "mamba_n_heads"},
      {{{"position_embedding_type", "alibi"}}, "alibi"},
      {{{"time_step_limit", {0.001, 100.0}}}, "time_step_limit"}};
  for (const auto& [changes, text] : bad)
    EXPECT_THAT(plan_error_of(granite_hybrid(changes)), HasSubstr(text));
  const Json unlimited = {0.0, {{"__float__", "Infinity"}}};
  EXPECT_EQ(plan_error_of(granite_hybrid({{"time_step_limit", unlimited}})), "no error");
}

TEST(NemotronH, ALayerHasOnePart) {
  const DecoderPlan plan = plan_of(nemotron());
  EXPECT_EQ(std::get<Mamba2Plan>(plan.layers[0].mixer).norm_groups, 2);
  EXPECT_TRUE(std::holds_alternative<AbsentPlan>(plan.layers[0].ffn));
  EXPECT_TRUE(std::holds_alternative<AbsentPlan>(plan.layers[1].mixer));
  EXPECT_FALSE(plan.layers[1].mlp().gated);
  EXPECT_FALSE(plan.layers[2].attention().rope.has_value());
  EXPECT_EQ(plan.layers[3].moe()->activation, Activation::kRelu);
  const auto specs = plan.cache_specs(DType::kFloat32, KvFormat::kPlain);
  EXPECT_TRUE(std::holds_alternative<NoCacheSpec>(specs[3]));
  // A norm, and two matrices without a gate.
  const DecoderPlan longer = plan_of(nemotron({{"hybrid_override_pattern", "M-*E-"}}));
  EXPECT_EQ(longer.parameters() - plan.parameters(), 64 + 2 * 64 * 96);
}

TEST(NemotronH, BothListsOfLayersAreRead) {
  const DecoderPlan plan = plan_of(
      nemotron({{"hybrid_override_pattern", nullptr},
                {"layers_block_type", {"linear_attention", "mlp", "full_attention", "moe"}}}));
  EXPECT_EQ(plan.parameters(), plan_of(nemotron()).parameters());
}

TEST(NemotronH, RefusesWhatItCannotCompute) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {{{"hybrid_override_pattern", "M-*X"}}, "\"X\""},
      {{{"hybrid_override_pattern", "M-M-"}}, "no attention layer"},
      {{{"hybrid_override_pattern", ""}}, "hybrid_override_pattern"},
      {{{"moe_latent_size", 16}}, "moe_latent_size"},
      {{{"mlp_hidden_act", "silu"}}, "mlp_hidden_act"},
      {{{"use_bias", true}}, "use_bias"}};
  for (const auto& [changes, text] : bad)
    EXPECT_THAT(plan_error_of(nemotron(changes)), HasSubstr(text));
}

}  // namespace
}  // namespace octavo

// Plans of encoders from published configs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "models/families/plan_of.h"
#include "models/families/published_configs.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json encoder_config(std::string_view name, const Json& changes = Json::object()) {
  for (const PublishedConfig& each : kPublishedConfigs) {
    if (name != each.name) continue;
    Json json = Json::parse(each.json);
    json.update(changes);
    return json;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Bert, HasNormsAfterTheSumsAndThreeTables) {
  const DecoderPlan plan = plan_of(encoder_config("bert-base-uncased"));
  ASSERT_TRUE(plan.encoder.has_value());
  EXPECT_EQ(plan.encoder->position_rows, 512);
  EXPECT_EQ(plan.encoder->first_position, 0);
  EXPECT_EQ(plan.encoder->type_rows, 2);
  EXPECT_EQ(plan.max_context, 512);
  EXPECT_EQ(plan.norm_kind, Norm::kLayer);
  EXPECT_TRUE(plan.norm_bias && plan.final_norm.empty() && plan.head_name.empty());
  EXPECT_FLOAT_EQ(plan.norm_eps, 1e-12f);
  const LayerPlan& layer = plan.layers[11];
  EXPECT_TRUE(layer.mixer_half.norm_in.empty() && layer.mixer_half.norm_out.empty());
  EXPECT_FALSE(layer.mixer_half.norm_after.empty() || layer.ffn_half.norm_after.empty());
  EXPECT_TRUE(layer.attention().sees_later && layer.attention().qkv_bias);
  EXPECT_EQ(layer.attention().head_dim, 64);
  EXPECT_FALSE(layer.attention().rope.has_value());
  EXPECT_EQ(layer.mlp().activation, Activation::kGelu);
  EXPECT_FALSE(layer.mlp().gated || layer.mlp().squares);
  // transformers' count of BertModel, without its pooler.
  EXPECT_EQ(plan.parameters(), 108891648u);
}

TEST(Bert, NamesAreTransformers) {
  const DecoderPlan plan = plan_of(encoder_config("bert-base-uncased"));
  const auto name = [&](const char* ours) { return renamed(plan.tensor(ours), plan.renames); };
  EXPECT_EQ(name("embed_tokens.weight"), "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(name("layers.3.self_attn.q_proj.bias"),
            "bert.encoder.layer.3.attention.self.query.bias");
  EXPECT_EQ(name("layers.3.self_attn.o_proj.weight"),
            "bert.encoder.layer.3.attention.output.dense.weight");
  EXPECT_EQ(name("layers.3.mlp.down_proj.weight"), "bert.encoder.layer.3.output.dense.weight");
  // The last renames are for old checkpoints, and are dropped for others.
  EXPECT_EQ(name("layers.3.post_feedforward_layernorm.bias"),
            "bert.encoder.layer.3.output.LayerNorm.beta");
}

TEST(XlmRoberta, PositionsBeginAfterPadding) {
  for (const char* model : {"bge-m3", "bge-reranker-v2-m3"}) {
    const DecoderPlan plan = plan_of(encoder_config(model));
    EXPECT_EQ(plan.encoder->position_rows, 8194);
    EXPECT_EQ(plan.encoder->first_position, 2);
    EXPECT_EQ(plan.max_context, 8192);
    EXPECT_EQ(plan.encoder->type_rows, 1);
    EXPECT_EQ(plan.prefix, "roberta");
    EXPECT_EQ(plan.layers.size(), 24u);
  }
  EXPECT_EQ(plan_of(encoder_config("roberta-base")).max_context, 512);
  EXPECT_THAT(plan_error_of(encoder_config("bge-m3", {{"max_position_embeddings", 2}})),
              HasSubstr("positions begin at pad_token_id + 1"));
}

TEST(ModernBert, HasWindowsToBothSidesAndTwoRopes) {
  const DecoderPlan plan = plan_of(encoder_config("ModernBERT-base"));
  std::vector<int> windows, after, ropes;
  for (int i = 0; i < 4; ++i) {
    const AttentionPlan& attention = plan.layers[static_cast<size_t>(i)].attention();
    windows.push_back(attention.window);
    after.push_back(attention.window_after);
    ropes.push_back(*attention.rope);
  }
  EXPECT_THAT(windows, ElementsAre(0, 65, 65, 0));
  EXPECT_THAT(after, ElementsAre(0, 64, 64, 0));
  EXPECT_THAT(ropes, ElementsAre(0, 1, 1, 0));
  EXPECT_NE(plan.ropes[0], plan.ropes[1]);
  EXPECT_TRUE(plan.layers[0].mixer_half.norm_in.empty());
  EXPECT_EQ(plan.layers[1].mixer_half.norm_in, "attn_norm");
  EXPECT_EQ(plan.final_norm, "final_norm");
  EXPECT_FALSE(plan.norm_bias);
  EXPECT_TRUE(plan.layers[0].mlp().gated && plan.layers[0].mlp().fused);
  EXPECT_TRUE(plan.encoder->positions.empty() && plan.encoder->token_types.empty());
  // One step reads a whole prompt, so pages before the window stay.
  for (const CacheSpec& spec : plan.cache_specs(DType::kFloat32, KvFormat::kPlain))
    EXPECT_EQ(std::get<SoftmaxSpec>(spec).window, 0);
  EXPECT_EQ(plan.parameters(), 149014272u);
}

TEST(ModernBert, LayerTypesComeBeforeTheInterval) {
  const DecoderPlan plan = plan_of(encoder_config(
      "ModernBERT-base",
      {{"num_hidden_layers", 2}, {"layer_types", {"sliding_attention", "full_attention"}}}));
  EXPECT_EQ(plan.layers[0].attention().window_after, 64);
  EXPECT_EQ(plan.layers[1].attention().window_after, 0);
}

TEST(ModernBert, MmbertHasItsOwnNameForPositions) {
  const Json rope = {{"rope_type", "default"}, {"rope_theta", 160000.0}};
  const DecoderPlan plan = plan_of(encoder_config(
      "ModernBERT-base",
      {{"position_embedding_type", "sans_pos"},
       {"rope_parameters", {{"full_attention", rope}, {"sliding_attention", rope}}}}));
  EXPECT_EQ(plan.ropes[0], plan.ropes[1]);
}

TEST(NomicBert, HasGpt2sKeysAndRope) {
  const DecoderPlan plan = plan_of(encoder_config("nomic-embed-text-v1.5"));
  EXPECT_EQ(plan.hidden, 768);
  EXPECT_EQ(plan.max_context, 2048);
  EXPECT_TRUE(plan.encoder->positions.empty());
  EXPECT_EQ(plan.encoder->type_rows, 2);
  EXPECT_EQ(plan.layers[0].mlp().intermediate, 3072);
  EXPECT_EQ(plan.layers[0].mlp().activation, Activation::kSilu);
  EXPECT_TRUE(plan.layers[0].attention().fused_qkv && !plan.layers[0].attention().qkv_bias);
}

TEST(Encoders, WhatChangesNumbersIsRefusedByName) {
  const std::vector<std::pair<const char*, Json>> changes = {
      {"bert-base-uncased", {{"position_embedding_type", "relative_key_query"}}},
      {"bert-base-uncased", {{"hidden_act", "quick_gelu"}}},
      {"bert-base-uncased", {{"is_decoder", true}}},
      {"bert-base-uncased", {{"add_cross_attention", true}}},
      {"bert-base-uncased", {{"num_attention_heads", 7}}},
      {"bert-base-uncased", {{"num_attention_heads", 192}}},
      {"ModernBERT-base", {{"attention_bias", true}}},
      {"ModernBERT-base", {{"mlp_bias", true}}},
      {"ModernBERT-base", {{"hidden_activation", "swish2"}}},
      {"nomic-embed-text-v1.5", {{"prenorm", true}}},
      {"nomic-embed-text-v1.5", {{"rotary_emb_fraction", 0.5}}},
      {"nomic-embed-text-v1.5", {{"rotary_scaling_factor", 2}}},
      {"nomic-embed-text-v1.5", {{"rotary_emb_scale_base", 512}}},
      {"nomic-embed-text-v1.5", {{"activation_function", "gelu"}}},
  };
  for (const auto& [name, change] : changes)
    EXPECT_THAT(plan_error_of(encoder_config(name, change)), HasSubstr(change.begin().key()))
        << name;
}

}  // namespace
}  // namespace octavo

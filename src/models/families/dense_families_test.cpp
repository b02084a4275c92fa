// Plans of the dense families from published configs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

std::vector<int> windows(const DecoderPlan& plan) {
  std::vector<int> found;
  for (const auto& layer : plan.layers) found.push_back(layer.attention().window);
  return found;
}

Json small(const char* type) {
  return {{"model_type", type},       {"vocab_size", 128},        {"hidden_size", 64},
          {"num_hidden_layers", 4},   {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"intermediate_size", 128}, {"rms_norm_eps", 1e-5},     {"head_dim", 16},
          {"sliding_window", 32}};
}

// The complete text config of the published 4B model.
TEST(Gemma3, MostConfigKeysAreOptional) {
  const DecoderPlan plan = plan_of({{"model_type", "gemma3"},
                                    {"hidden_size", 2560},
                                    {"intermediate_size", 10240},
                                    {"num_hidden_layers", 34},
                                    {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                                    {"sliding_window", 1024}});
  EXPECT_EQ(plan.vocab, 262208);
  EXPECT_TRUE(plan.tied_embeddings);
  EXPECT_EQ(plan.embedding_scale, 50.5f);  // sqrt(2560) in bfloat16
  const AttentionPlan& sliding = plan.layers[0].attention();
  const AttentionPlan& full = plan.layers[5].attention();
  EXPECT_EQ(sliding.heads, 8);
  EXPECT_EQ(sliding.kv_heads, 4);
  EXPECT_EQ(sliding.head_dim, 256);
  EXPECT_EQ(sliding.window, 1024);
  EXPECT_EQ(full.window, 0);
  EXPECT_FLOAT_EQ(full.scale, 1.0f / 16);
  EXPECT_FLOAT_EQ(plan.ropes[0].inverse_frequencies[0], 1.0f / 8);
  EXPECT_FLOAT_EQ(plan.ropes[1].inverse_frequencies[0], 1.0f);
}

TEST(Gemma3, RopesMayBeGivenPerLayerType) {
  const Json ropes = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 4}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  const DecoderPlan plan = plan_of(with(small("gemma3_text"), {{"rope_parameters", ropes}}));
  EXPECT_FLOAT_EQ(plan.ropes[0].inverse_frequencies[0], 0.25f);
  EXPECT_FLOAT_EQ(plan.ropes[1].inverse_frequencies[1], std::pow(1e4f, -1.0f / 8));
}

TEST(Gemma4, LastLayersReadTheLastCacheOfTheirType) {
  const DecoderPlan plan =
      plan_of(with(small("gemma4_text"), {{"num_hidden_layers", 12},
                                          {"sliding_window_pattern", 3},
                                          {"num_kv_shared_layers", 5},
                                          {"global_head_dim", 32},
                                          {"use_double_wide_mlp", true},
                                          {"hidden_size_per_layer_input", 8}}));
  std::vector<int> shared;
  for (const auto& layer : plan.layers)
    shared.push_back(layer.attention().shares_layer.value_or(-1));
  EXPECT_THAT(shared, ElementsAre(-1, -1, -1, -1, -1, -1, -1, 6, 5, 6, 6, 5));
  EXPECT_EQ(plan.layers[8].attention().head_dim, 32);
  EXPECT_EQ(plan.layers[8].mlp().intermediate, 256);
  EXPECT_EQ(plan.layers[6].mlp().intermediate, 128);
  const auto specs = plan.cache_specs(DType::kBFloat16, KvFormat::kPlain);
  EXPECT_EQ(std::get<SharedSpec>(specs[11]).layer, 5);
  // A quarter of a full head is rotated, with the frequencies of a whole one.
  const auto& frequencies = plan.ropes[0].inverse_frequencies;
  ASSERT_EQ(frequencies.size(), 16u);
  EXPECT_FLOAT_EQ(frequencies[1], std::pow(1e6f, -1.0f / 16));
  EXPECT_EQ(frequencies[4], 0);
}

TEST(DenseFamilies, WindowsFollowLayerTypes) {
  EXPECT_THAT(windows(plan_of(small("gemma2"))), ElementsAre(32, 0, 32, 0));
  EXPECT_THAT(windows(plan_of(small("olmo3"))), ElementsAre(32, 32, 32, 0));
  EXPECT_THAT(windows(plan_of(small("mistral"))), ElementsAre(32, 32, 32, 32));
  EXPECT_THAT(windows(plan_of(small("phi3"))), ElementsAre(32, 32, 32, 32));
  const Json kinds = {"full_attention", "sliding_attention", "full_attention", "full_attention"};
  for (const char* type : {"gemma2", "gemma3_text", "olmo3", "mistral", "ministral3"}) {
    EXPECT_THAT(windows(plan_of(with(small(type), {{"layer_types", kinds}}))),
                ElementsAre(0, 32, 0, 0))
        << type;
  }
}

TEST(DenseFamilies, UnsupportedValuesNameTheField) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {with(small("gemma2"), {{"hidden_activation", "relu"}}), "hidden_activation"},
      {with(small("gemma3_text"), {{"use_bidirectional_attention", true}}),
       "use_bidirectional_attention"},
      {with(small("gemma4_text"), {{"use_bidirectional_attention", "all"}}),
       "use_bidirectional_attention"},
      {with(small("gemma4_text"), {{"num_kv_shared_layers", 4}}), "num_kv_shared_layers"},
      {with(small("gemma4_text"), {{"num_kv_shared_layers", 3}, {"sliding_window_pattern", 2}}),
       "num_kv_shared_layers"},
      {with(small("gemma4_text"), {{"vocab_size_per_layer_input", 64}}),
       "vocab_size_per_layer_input"},
      {with(small("olmo3"), {{"layer_types", {"full_attention"}}}), "layer_types"},
      {with(small("olmo3"), {{"layer_types", {"a", "b", "c", "d"}}}), "layer_types"},
      {with(small("mistral3"), {{"kv_lora_rank", 32}}), "kv_lora_rank"},
      {with(small("glm4"), {{"partial_rotary_factor", 0.7}}), "partial_rotary_factor"},
      {with(small("granite"), {{"logits_scaling", 0}}), "logits_scaling"},
      {with(small("lfm2"), {{"norm_eps", 1e-5}, {"conv_L_cache", 64}}), "conv_L_cache"},
      {with(small("lfm2"), {{"norm_eps", 1e-5},
                            {"conv_L_cache", 3},
                            {"layer_types", {"conv", "conv", "full_attention", "mamba"}}}),
       "mamba"},
      {with(small("lfm2"), {{"norm_eps", 1e-5}, {"hidden_size", 72}, {"conv_L_cache", 3}}),
       "hidden_size"},
      {with(small("phi3"), {{"rope_scaling", {{"type", "longrope"}, {"long_factor", {1.0, 2.0}}}}}),
       "long_factor"},
  };
  for (const auto& [config, field] : bad)
    EXPECT_THAT(plan_error_of(config), HasSubstr(field)) << config;
}

}  // namespace
}  // namespace octavo

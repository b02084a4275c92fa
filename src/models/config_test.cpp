#include "models/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json llama_json() {
  return {{"model_type", "llama"},    {"vocab_size", 128},        {"hidden_size", 64},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"intermediate_size", 128}, {"rms_norm_eps", 1e-5}};
}

TEST(Config, ValuesAreCheckedForTypeAndRange) {
  const Config config({{"n", 5}, {"f", 0.5}, {"list", {1, 2}}, {"text", "x"}, {"none", nullptr}},
                      "config.json");
  EXPECT_EQ(config.integer("n"), 5);
  EXPECT_EQ(config.integer_or("none", 7), 7);
  EXPECT_THAT(config.integers("list"), ElementsAre(1, 2));
  EXPECT_THAT(config.integers("n"), ElementsAre(5));
  EXPECT_THROW(config.integer("f"), SetupError);
  EXPECT_THROW(config.integer("text"), SetupError);
  EXPECT_THROW(config.integer("n", 6), SetupError);
  EXPECT_THROW(config.number("list"), SetupError);
  EXPECT_THROW(Config(Json::array(), "config.json"), SetupError);
}

// As Python's json module writes infinity.
TEST(Config, NumbersThatJsonDoesNotHaveAreNull) {
  const auto path = std::filesystem::path(testing::TempDir()) / "octavo_python_numbers.json";
  std::ofstream(path) << R"({"limit": [0.0, Infinity], "low": -Infinity, "none": NaN,)"
                      << R"( "text": "a \\\" Infinity"})";
  const Json json = read_json(path);
  EXPECT_EQ(json["limit"], Json({0.0, nullptr}));
  EXPECT_TRUE(json["low"].is_null() && json["none"].is_null());
  EXPECT_EQ(json["text"], "a \\\" Infinity");
  std::ofstream(path) << R"({"limit": [0.0, Infinit]})";
  EXPECT_THROW(read_json(path), SetupError);
  std::filesystem::remove(path);
}

TEST(Families, ALlamaConfigBecomesAPlan) {
  const DecoderPlan plan = plan_of(llama_json());
  EXPECT_EQ(plan.family, "llama");
  ASSERT_EQ(plan.layers.size(), 2u);
  EXPECT_EQ(plan.layers[0].attention().head_dim, 16);
  EXPECT_FLOAT_EQ(plan.layers[0].attention().scale, 0.25f);
  EXPECT_FALSE(plan.layers[0].attention().qkv_bias);
}

// Configs are untrusted: every number is checked before it is used as a size.
TEST(Families, ABadConfigNamesItsField) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {{{"vocab_size", -1}}, "vocab_size"},
      {{{"vocab_size", 1e18}}, "vocab_size"},
      {{{"hidden_size", 0}}, "hidden_size"},
      {{{"hidden_size", "64"}}, "hidden_size"},
      {{{"hidden_size", 62}}, "num_attention_heads"},
      {{{"num_key_value_heads", 3}}, "num_key_value_heads"},
      {{{"num_hidden_layers", 1000000}}, "num_hidden_layers"},
      {{{"head_dim", 12}}, "head_dim"},
      {{{"intermediate_size", nullptr}}, "intermediate_size"},
      {{{"hidden_act", "relu"}}, "hidden_act"},
      {{{"rope_theta", -5}}, "rope_theta"},
      {{{"rope_scaling", {{"rope_type", "mystery"}}}}, "mystery"},
      {{{"rope_scaling", {{"rope_type", "linear"}}}}, "factor"},
      {{{"model_type", "lamma"}}, "llama"},
  };
  for (const auto& [change, fragment] : bad) {
    Json json = llama_json();
    json.update(change);
    EXPECT_THAT(plan_error_of(json), HasSubstr(fragment)) << change;
  }
}

TEST(Families, SwitchesOfEachFamilyAreRead) {
  Json json = llama_json();
  json["model_type"] = "mistral";
  json["sliding_window"] = 64;
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 64);
  json["model_type"] = "qwen2";
  EXPECT_TRUE(plan_of(json).layers[0].attention().qkv_bias);
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 0);
  json["use_sliding_window"] = true;
  json["max_window_layers"] = 1;
  EXPECT_EQ(plan_of(json).layers[0].attention().window, 0);
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 64);
  json["model_type"] = "qwen3";
  EXPECT_TRUE(plan_of(json).layers[0].attention().qk_norm);
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 64);
  json["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(plan_of(json).layers[0].attention().window, 64);
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 0);
  json["use_sliding_window"] = false;
  EXPECT_THAT(plan_error_of(json), HasSubstr("layer_types"));
  json["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(plan_of(json).layers[1].attention().window, 0);
  json["model_type"] = "smollm3";
  json["no_rope_layers"] = {1, 0};
  EXPECT_TRUE(plan_of(json).layers[0].attention().rope.has_value());
  EXPECT_FALSE(plan_of(json).layers[1].attention().rope.has_value());
}

Json hybrid_json() {
  Json json = llama_json();
  json.update({{"model_type", "qwen3_5"},
               {"num_hidden_layers", 8},
               {"head_dim", 64},
               {"linear_num_key_heads", 2},
               {"linear_num_value_heads", 6},
               {"linear_key_head_dim", 32},
               {"linear_value_head_dim", 48},
               {"linear_conv_kernel_dim", 4},
               {"rope_parameters", {{"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}}}});
  return json;
}

TEST(Families, AHybridHasAttentionInEveryFourthLayer) {
  Json json = hybrid_json();
  DecoderPlan plan = plan_of(json);
  for (size_t i = 0; i < plan.layers.size(); ++i)
    EXPECT_EQ(std::holds_alternative<AttentionPlan>(plan.layers[i].mixer), i % 4 == 3) << i;
  EXPECT_EQ(plan.ropes.at(0).inverse_frequencies.size(), 8u);  // a quarter of 64, in pairs
  EXPECT_TRUE(plan.layers[3].attention().output_gate);
  EXPECT_EQ(std::get<GatedDeltaPlan>(plan.layers[0].mixer).conv_channels(), 2 * 64 + 288);
  json["layer_types"] = Json::array();
  for (int i = 0; i < 8; ++i)
    json["layer_types"].push_back(i < 4 ? "full_attention" : "linear_attention");
  plan = plan_of(json);
  EXPECT_TRUE(std::holds_alternative<AttentionPlan>(plan.layers[0].mixer));
  EXPECT_TRUE(std::holds_alternative<GatedDeltaPlan>(plan.layers[7].mixer));
}

TEST(Families, AHybridRefusesWhatItCannotCompute) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {{{"linear_key_head_dim", 512}}, "linear_key_head_dim"},
      {{{"linear_value_head_dim", 24}}, "linear_value_head_dim"},
      {{{"linear_num_value_heads", 5}}, "linear_num_key_heads"},
      {{{"linear_conv_kernel_dim", 9}}, "linear_conv_kernel_dim"},
      {{{"layer_types", {"full_attention"}}}, "layer_types"},
      {{{"layer_types", Json(8, "sliding_attention")}}, "layer_types"},
      {{{"output_gate_type", "sigmoid"}}, "output_gate_type"},
      {{{"mamba_ssm_dtype", "bfloat16"}}, "mamba_ssm_dtype"},
      {{{"rope_parameters", {{"partial_rotary_factor", 1.5}}}}, "partial_rotary_factor"},
  };
  for (const auto& [change, fragment] : bad) {
    Json json = hybrid_json();
    json.update(change);
    EXPECT_THAT(plan_error_of(json), HasSubstr(fragment)) << change;
  }
}

TEST(RopeScaling, EachTypeScalesTheFrequencies) {
  Json json = llama_json();
  const auto plain = plan_rope(Config(json, "c"), 16);
  ASSERT_EQ(plain.inverse_frequencies.size(), 8u);
  EXPECT_FLOAT_EQ(plain.inverse_frequencies[0], 1);
  EXPECT_FLOAT_EQ(plain.inverse_frequencies[4], 0.01f);

  json["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  EXPECT_FLOAT_EQ(plan_rope(Config(json, "c"), 16).inverse_frequencies[4], 0.0025f);

  json["rope_scaling"] = {
      {"rope_type", "llama3"}, {"factor", 8.0}, {"original_max_position_embeddings", 64}};
  const auto llama3 = plan_rope(Config(json, "c"), 16);
  EXPECT_FLOAT_EQ(llama3.inverse_frequencies[0], 1);  // high frequencies stay
  EXPECT_FLOAT_EQ(llama3.inverse_frequencies[7],
                  plain.inverse_frequencies[7] / 8);  // low frequencies are divided
  json["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  EXPECT_FLOAT_EQ(plan_rope(Config(json, "c"), 16).magnitude, 0.1f * std::log(4.0f) + 1);

  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 100.0}};
  EXPECT_FLOAT_EQ(plan_rope(Config(json, "c"), 16).inverse_frequencies[4], 0.1f);
}

}  // namespace
}  // namespace octavo

// How families treat the rows of images: their positions, and what they see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

// Four layers, of which the second and the fourth are full.
Json image_text(const char* type, const Json& changes = Json::object()) {
  Json json = {{"model_type", type},       {"vocab_size", 128},          {"hidden_size", 64},
               {"num_hidden_layers", 4},   {"num_attention_heads", 4},   {"num_key_value_heads", 2},
               {"intermediate_size", 128}, {"rms_norm_eps", 1e-5},       {"head_dim", 16},
               {"sliding_window", 32},     {"sliding_window_pattern", 2}};
  json.update(changes);
  return json;
}

Json hybrid(const char* type, const Json& rope) {
  return image_text(type, {{"head_dim", 64},
                           {"linear_num_key_heads", 2},
                           {"linear_num_value_heads", 4},
                           {"linear_key_head_dim", 32},
                           {"linear_value_head_dim", 32},
                           {"linear_conv_kernel_dim", 4},
                           {"rope_parameters", rope}});
}

Json three_sections(const Json& sections) {
  return {{"rope_type", "default"},
          {"rope_theta", 1e7},
          {"partial_rotary_factor", 0.25},
          {"mrope_interleaved", true},
          {"mrope_section", sections}};
}

std::vector<bool> seeing(const DecoderPlan& plan) {
  std::vector<bool> found;
  for (const auto& layer : plan.layers) found.push_back(layer.attention().sees_later);
  return found;
}

TEST(ImageFamilies, PairsOfQwen35TakeTurnsUntilTheirSectionEnds) {
  const DecoderPlan plan = plan_of(hybrid("qwen3_5_text", three_sections({3, 3, 2})));
  EXPECT_THAT(plan.ropes.at(0).axes, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
  const DecoderPlan uneven = plan_of(hybrid("qwen3_5_text", three_sections({5, 1, 2})));
  EXPECT_THAT(uneven.ropes.at(0).axes, ElementsAre(0, 1, 2, 0, 0, 2, 0, 0));
}

TEST(ImageFamilies, SectionsOfQwen35HaveADefault) {
  const Json rope = {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 1.0}};
  const DecoderPlan plan = plan_of(hybrid("qwen3_5_text", rope));
  const std::vector<int32_t>& axes = plan.ropes.at(0).axes;
  ASSERT_EQ(axes.size(), 32u);
  EXPECT_EQ(std::ranges::count(axes, 0), 11);
  EXPECT_EQ(std::ranges::count(axes, 1), 11);
  EXPECT_EQ(std::ranges::count(axes, 2), 10);
}

TEST(ImageFamilies, PairsOfQwen3VlTakeTurns) {
  const Json rope = {{"rope_type", "default"}, {"mrope_section", {4, 2, 2}}};
  const Json sections = {{"rope_theta", 5e6}, {"rope_scaling", rope}};
  const DecoderPlan plan = plan_of(image_text("qwen3_vl", sections));
  EXPECT_EQ(plan.family, "qwen3_vl");
  EXPECT_TRUE(plan.layers[0].attention().qk_norm);
  EXPECT_THAT(plan.ropes.at(0).axes, ElementsAre(0, 1, 2, 0, 1, 2, 0, 0));
  const DecoderPlan usual = plan_of(image_text("qwen3_vl_text", {{"head_dim", 128}}));
  const std::vector<int32_t>& axes = usual.ropes.at(0).axes;
  ASSERT_EQ(axes.size(), 64u);
  EXPECT_EQ(std::ranges::count(axes, 0), 24);
  EXPECT_EQ(std::ranges::count(axes, 1), 20);
  EXPECT_EQ(std::ranges::count(axes, 2), 20);
  EXPECT_EQ(axes[60], 0);
}

TEST(ImageFamilies, OtherSectionsAreRefused) {
  EXPECT_THAT(plan_error_of(hybrid("qwen3_5_text", three_sections({8, 8}))),
              HasSubstr("mrope_section"));
  EXPECT_THAT(plan_error_of(image_text("qwen3_vl", {{"rope_scaling", three_sections({8, 8})}})),
              HasSubstr("mrope_section"));
  EXPECT_THAT(plan_error_of(hybrid("qwen3_5_text", three_sections({-1, 8, 8}))),
              HasSubstr("mrope_section"));
}

TEST(ImageFamilies, OneAxisIsEnoughForText) {
  EXPECT_THAT(plan_of(hybrid("qwen3_next", three_sections({3, 3, 2}))).ropes.at(0).axes, IsEmpty());
  EXPECT_THAT(plan_of(image_text("gemma3_text")).ropes.at(0).axes, IsEmpty());
}

TEST(ImageFamilies, AllLayersOfGemma3SeeAnImage) {
  EXPECT_THAT(seeing(plan_of(image_text("gemma3_text"))), Each(true));
}

TEST(ImageFamilies, SlidingLayersOfGemma4SeeAnImageIfTheConfigSaysSo) {
  const Json large = image_text("gemma4_text", {{"use_bidirectional_attention", "vision"}});
  EXPECT_THAT(seeing(plan_of(large)), ElementsAre(true, false, true, false));
  const Json small = image_text("gemma4_text", {{"use_bidirectional_attention", nullptr}});
  EXPECT_THAT(seeing(plan_of(small)), Each(false));
}

TEST(ImageFamilies, ImagesOfMistralAreCausal) {
  EXPECT_THAT(seeing(plan_of(image_text("mistral"))), Each(false));
}

}  // namespace
}  // namespace octavo

// Families with experts: plans from configs, and parameter counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json json_of(const char* model_type, const Json& changes) {
  Json json = {{"model_type", model_type}, {"vocab_size", 128},        {"hidden_size", 64},
               {"num_hidden_layers", 4},   {"num_attention_heads", 4}, {"num_key_value_heads", 2},
               {"intermediate_size", 128}, {"rms_norm_eps", 1e-5}};
  json.update(changes);
  return json;
}

Json qwen3_moe(const Json& changes = Json::object()) {
  Json json = json_of("qwen3_moe", {{"num_experts", 8},
                                    {"num_experts_per_tok", 2},
                                    {"moe_intermediate_size", 32},
                                    {"norm_topk_prob", true}});
  json.update(changes);
  return json;
}

Json gpt_oss(const Json& changes = Json::object()) {
  Json json = json_of("gpt_oss", {{"num_local_experts", 8}, {"num_experts_per_tok", 4}});
  json.update(changes);
  return json;
}

std::vector<bool> sparse_layers(const DecoderPlan& plan) {
  std::vector<bool> sparse;
  for (const auto& layer : plan.layers) sparse.push_back(layer.moe() != nullptr);
  return sparse;
}

TEST(Experts, Qwen3ConfigsSelectTheLayers) {
  EXPECT_THAT(sparse_layers(plan_of(qwen3_moe())), ElementsAre(true, true, true, true));
  EXPECT_THAT(sparse_layers(plan_of(qwen3_moe({{"decoder_sparse_step", 2}}))),
              ElementsAre(false, true, false, true));
  EXPECT_THAT(sparse_layers(plan_of(qwen3_moe({{"mlp_only_layers", {0, 3}}}))),
              ElementsAre(false, true, true, false));
  const MoePlan moe = *plan_of(qwen3_moe()).layers[0].moe();
  EXPECT_EQ(moe.choice.score, ExpertScore::kSoftmax);
  EXPECT_TRUE(moe.choice.renormalize);
  EXPECT_EQ(moe.shared_intermediate, 0);
}

TEST(Experts, Qwen3VlRenormalizesAndMayHaveTurnedTensors) {
  Json json = qwen3_moe({{"model_type", "qwen3_vl_moe"}, {"mlp_only_layers", {0}}});
  const DecoderPlan plan = plan_of(json);
  EXPECT_EQ(plan.family, "qwen3_vl_moe");
  EXPECT_THAT(sparse_layers(plan), ElementsAre(false, true, true, true));
  EXPECT_TRUE(plan.layers[1].moe()->may_be_turned);
  EXPECT_FALSE(plan_of(qwen3_moe()).layers[0].moe()->may_be_turned);
  EXPECT_FALSE(plan.ropes.at(0).axes.empty());
  json.erase("norm_topk_prob");
  EXPECT_TRUE(plan_of(json).layers[1].moe()->choice.renormalize);
  json["norm_topk_prob"] = false;
  EXPECT_THAT(plan_error_of(json), HasSubstr("norm_topk_prob"));
}

TEST(Experts, GptOssHasSinksAndAWindowInEveryOtherLayer) {
  const DecoderPlan plan = plan_of(gpt_oss());
  EXPECT_EQ(plan.layers[0].attention().window, 128);
  EXPECT_EQ(plan.layers[1].attention().window, 0);
  EXPECT_TRUE(plan.layers[1].attention().sinks);
  EXPECT_TRUE(plan.layers[1].attention().output_bias);
  EXPECT_EQ(plan.layers[0].moe()->activation, Activation::kBoundedSilu);
}

TEST(Experts, UnsupportedValuesNameTheField) {
  EXPECT_THAT(plan_error_of(qwen3_moe({{"num_experts_per_tok", 9}})),
              HasSubstr("num_experts_per_tok"));
  EXPECT_THAT(plan_error_of(qwen3_moe({{"num_experts", 0}})), HasSubstr("num_experts"));
  EXPECT_THAT(plan_error_of(qwen3_moe({{"use_sliding_window", true}})),
              HasSubstr("use_sliding_window"));
  EXPECT_THAT(plan_error_of(gpt_oss({{"swiglu_limit", 5}})), HasSubstr("swiglu_limit"));
  EXPECT_THAT(plan_error_of(gpt_oss({{"layer_types", {"full_attention"}}})),
              HasSubstr("layer_types"));
  EXPECT_THAT(plan_error_of(gpt_oss({{"layer_types", Json(4, "linear_attention")}})),
              HasSubstr("linear_attention"));
}

TEST(Experts, APlanCountsAllAndActiveParameters) {
  MoePlan plan;
  plan.choice.experts = 16;
  plan.choice.top_k = 2;
  plan.intermediate = 8;
  plan.shared_intermediate = 24;
  plan.shared_gate = true;
  const uint64_t expert = 3 * 4 * 8, around = 4 * 16 + 3 * 4 * 24 + 4;
  EXPECT_EQ(plan.parameters(4), around + 16 * expert);
  EXPECT_EQ(plan.active_parameters(4), around + 2 * expert);
  EXPECT_DOUBLE_EQ(plan.expected_share(1), 0.125);
  EXPECT_DOUBLE_EQ(plan.expected_share(2), 1 - 0.875 * 0.875);
}

}  // namespace
}  // namespace octavo

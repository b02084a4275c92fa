#include "engine/plan_encoder.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace octavo {
namespace {

ModelDescription encoder_of(int context) {
  ModelDescription model;
  model.plan.max_context = context;
  model.plan.encoder = EncoderPlan{.positions = "positions",
                                   .first_position = 2,
                                   .position_rows = context + 2,
                                   .token_types = {},
                                   .norm = "norm"};
  model.pooling = PoolingPlan{.kind = Pooling::kFirst};
  return model;
}

std::string refused(const ModelDescription& model, const EngineOptions& options) {
  try {
    options_for(model, options);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

void expect_named(const EngineOptions& options, const std::string& flag) {
  EXPECT_TRUE(refused(encoder_of(512), options).starts_with(flag + ":")) << flag;
}

TEST(PlanEncoder, AStepHoldsTheLongestText) {
  const ModelDescription model = encoder_of(8192);
  EXPECT_EQ(options_for(model, {}).max_num_batched_tokens, 8192);
  EXPECT_EQ(options_for(model, {.max_model_len = 1000}).max_num_batched_tokens, 1000);
  EXPECT_EQ(options_for(encoder_of(128), {}).max_num_batched_tokens, 512);
  const EngineOptions given{.max_num_batched_tokens = 64, .batched_tokens_given = true};
  EXPECT_EQ(options_for(model, given).max_num_batched_tokens, 64);
}

TEST(PlanEncoder, HasNoPrefixCache) {
  EXPECT_FALSE(options_for(encoder_of(512), {}).enable_prefix_caching);
  EXPECT_FALSE(
      options_for(encoder_of(512), options_for(encoder_of(512), {})).enable_prefix_caching);
  EXPECT_EQ(
      refused(encoder_of(512), {.enable_prefix_caching = false, .prefix_caching_given = true}), "");
}

TEST(PlanEncoder, OtherModelsKeepTheirOptions) {
  ModelDescription model;
  model.plan.max_context = 8192;
  const EngineOptions own = options_for(model, {.prefix_caching_given = true});
  EXPECT_EQ(own.max_num_batched_tokens, 512);
  EXPECT_TRUE(own.enable_prefix_caching);
}

TEST(PlanEncoder, UnsupportedOptionsAreNamed) {
  expect_named({.kv_format = KvFormat::kInt8}, "--kv-cache-dtype");
  expect_named({.prefix_caching_given = true}, "--enable-prefix-caching");
  expect_named({.prefix_disk = PrefixDiskOptions{}}, "--prefix-disk");
  expect_named({.adapters = AdapterOptions{}}, "--enable-lora");
  expect_named({.merge_adapter = "folder"}, "--merge-adapter");
  expect_named({.max_model_len = 513}, "--max-model-len");
  expect_named({.model_context = 513}, "--hf-overrides");
  ModelDescription generating = encoder_of(512);
  generating.pooling.reset();
  EXPECT_NE(refused(generating, {}).find("--runner"), std::string::npos);
}

}  // namespace
}  // namespace octavo

#include "models/plans/mla_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

Json lite_json() {
  return {{"num_attention_heads", 16}, {"kv_lora_rank", 512},    {"q_lora_rank", nullptr},
          {"qk_nope_head_dim", 128},   {"qk_rope_head_dim", 64}, {"v_head_dim", 128}};
}

SoftmaxSpec spec_of(const Json& json) {
  return std::get<SoftmaxSpec>(
      plan_mla(Config(json, "config.json")).cache_spec(DType::kBFloat16, KvFormat::kPlain));
}

TEST(MlaPlan, KeepsOneLatentRowPerToken) {
  EXPECT_EQ(spec_of(lite_json()).bytes_per_token(), 1152U);
  Json minicpm = lite_json();
  minicpm["kv_lora_rank"] = 256;
  minicpm["qk_rope_head_dim"] = 32;
  EXPECT_EQ(spec_of(minicpm).bytes_per_token(), 576U);
}

TEST(MlaPlan, RefusesInt8PagesAndSaysWhatToUse) {
  const MlaPlan plan = plan_mla(Config(lite_json(), "config.json"));
  try {
    plan.cache_spec(DType::kBFloat16, KvFormat::kInt8);
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("--kv-cache-dtype"), std::string::npos);
  }
}

TEST(MlaPlan, CountsTheParametersOfDeepSeekV2Lite) {
  const MlaPlan plan = plan_mla(Config(lite_json(), "config.json"));
  // q_proj, kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj, o_proj
  EXPECT_EQ(plan.parameters(2048),
            2048U * 16 * 192 + 2048U * 576 + 512 + 512U * 16 * 256 + 16U * 128 * 2048);
}

TEST(MlaPlan, RefusesHeadsThatDoNotFillStrips) {
  for (const char* key : {"kv_lora_rank", "qk_nope_head_dim", "v_head_dim"}) {
    Json json = lite_json();
    json[key] = 120;
    EXPECT_THROW(plan_mla(Config(json, "config.json")), SetupError) << key;
  }
  Json odd = lite_json();
  odd["qk_rope_head_dim"] = 63;
  EXPECT_THROW(plan_mla(Config(odd, "config.json")), SetupError);
}

}  // namespace
}  // namespace octavo

// Numbers of a config are untrusted: whatever they are, planning a model ends with a plan whose
// numbers the kernels accept, or with an error that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/families/plan_of.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json base_json(const char* model_type, const Json& changes = Json::object()) {
  Json json = {
      {"model_type", model_type}, {"vocab_size", 128},        {"hidden_size", 64},
      {"num_hidden_layers", 4},   {"num_attention_heads", 4}, {"num_key_value_heads", 2},
      {"intermediate_size", 128}, {"rms_norm_eps", 1e-5},     {"head_dim", 16},
      {"sliding_window", 32},     {"rope_theta", 1e4},        {"max_position_embeddings", 256}};
  json.update(changes);
  return json;
}

Json latent_json(const char* model_type) {
  return base_json(model_type, {{"kv_lora_rank", 32},
                                {"q_lora_rank", 16},
                                {"qk_nope_head_dim", 16},
                                {"qk_rope_head_dim", 8},
                                {"v_head_dim", 16},
                                {"n_routed_experts", 8},
                                {"num_experts_per_tok", 2},
                                {"n_group", 2},
                                {"topk_group", 1},
                                {"n_shared_experts", 1},
                                {"moe_intermediate_size", 32},
                                {"first_k_dense_replace", 1},
                                {"moe_layer_freq", 1},
                                {"routed_scaling_factor", 2.5}});
}

// Between them, these have every number that a family reads.
std::vector<Json> whole_configs() {
  const Json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"beta_fast", 32},
                     {"beta_slow", 1},
                     {"mscale", 0.7},
                     {"mscale_all_dim", 0.7},
                     {"attention_factor", 1.25},
                     {"original_max_position_embeddings", 64}};
  const Json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 64}};
  const Json longrope = {{"rope_type", "longrope"},
                         {"long_factor", {1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5}},
                         {"original_max_position_embeddings", 64}};
  const Json soft_caps = {{"query_pre_attn_scalar", 16},
                          {"attn_logit_softcapping", 50.0},
                          {"final_logit_softcapping", 30.0}};
  std::vector<Json> configs = {
      base_json("llama", {{"rope_scaling", llama3}}),
      base_json("llama", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}}),
      base_json("phi3", {{"rope_scaling", longrope}}),
      base_json("gemma2", soft_caps),
      base_json("gemma3_text", soft_caps),
      base_json("gemma4_text", {{"global_head_dim", 32},
                                {"final_logit_softcapping", 30.0},
                                {"sliding_window_pattern", 2},
                                {"num_kv_shared_layers", 1},
                                {"hidden_size_per_layer_input", 8},
                                {"vocab_size_per_layer_input", 128}}),
      base_json("granite", {{"logits_scaling", 8.0},
                            {"attention_multiplier", 0.25},
                            {"embedding_multiplier", 12.0},
                            {"residual_multiplier", 0.22}}),
      base_json("ministral3", {{"rope_parameters",
                                {{"rope_theta", 1e4},
                                 {"partial_rotary_factor", 1.0},
                                 {"llama_4_scaling_beta", 0.1},
                                 {"original_max_position_embeddings", 64}}}}),
      base_json("mixtral", {{"num_local_experts", 4}, {"num_experts_per_tok", 2}}),
      base_json("gpt_oss", {{"num_local_experts", 4}, {"num_experts_per_tok", 2}}),
      base_json("qwen2_moe", {{"num_experts", 8},
                              {"num_experts_per_tok", 2},
                              {"moe_intermediate_size", 32},
                              {"shared_expert_intermediate_size", 32},
                              {"decoder_sparse_step", 1}}),
      base_json("qwen3_5", {{"head_dim", 64},
                            {"linear_num_key_heads", 2},
                            {"linear_num_value_heads", 6},
                            {"linear_key_head_dim", 32},
                            {"linear_value_head_dim", 48},
                            {"linear_conv_kernel_dim", 4},
                            {"full_attention_interval", 4},
                            {"partial_rotary_factor", 0.25}}),
      base_json("lfm2", {{"norm_eps", 1e-5},
                         {"conv_L_cache", 3},
                         {"block_ff_dim", 384},
                         {"block_multiple_of", 64},
                         {"block_ffn_dim_multiplier", 1.0},
                         {"block_auto_adjust_ff_dim", true},
                         {"full_attn_idxs", {1, 3}}}),
      base_json("granitemoehybrid", {{"layer_types", {"mamba", "attention", "mamba", "mamba"}},
                                     {"num_local_experts", 8},
                                     {"num_experts_per_tok", 2},
                                     {"shared_intermediate_size", 48},
                                     {"mamba_n_heads", 8},
                                     {"mamba_d_head", 16},
                                     {"mamba_d_state", 32},
                                     {"mamba_n_groups", 2},
                                     {"mamba_d_conv", 4},
                                     {"mamba_expand", 2}}),
      base_json("nemotron_h", {{"hybrid_override_pattern", "M-*E"},
                               {"layer_norm_epsilon", 1e-5},
                               {"mamba_num_heads", 4},
                               {"mamba_head_dim", 16},
                               {"ssm_state_size", 32},
                               {"n_groups", 2},
                               {"conv_kernel", 4},
                               {"n_routed_experts", 8},
                               {"n_shared_experts", 1},
                               {"num_experts_per_tok", 2},
                               {"n_group", 2},
                               {"topk_group", 1},
                               {"moe_intermediate_size", 32},
                               {"moe_shared_expert_intermediate_size", 64},
                               {"routed_scaling_factor", 2.5}}),
      base_json("smollm3", {{"no_rope_layer_interval", 4}}),
      base_json("olmo3", {{"rope_scaling", yarn}}),
      base_json("bert", {{"type_vocab_size", 2}, {"layer_norm_eps", 1e-12}}),
      base_json("xlm-roberta", {{"pad_token_id", 1}, {"type_vocab_size", 1}}),
      base_json("modernbert", {{"norm_eps", 1e-5},
                               {"local_attention", 32},
                               {"global_attn_every_n_layers", 3},
                               {"global_rope_theta", 160000.0},
                               {"local_rope_theta", 10000.0}}),
      base_json("nomic_bert", {{"n_embd", 64},
                               {"n_head", 4},
                               {"n_layer", 4},
                               {"n_inner", 128},
                               {"n_positions", 512},
                               {"max_trained_positions", 256},
                               {"layer_norm_epsilon", 1e-12},
                               {"rotary_emb_base", 1000}}),
      latent_json("deepseek_v3"),
  };
  configs.back()["rope_scaling"] = yarn;
  Json minicpm = latent_json("minicpm3");
  minicpm.update({{"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 32}});
  minicpm.erase("v_head_dim");
  configs.push_back(std::move(minicpm));
  return configs;
}

void expect_sound(const AttentionPlan& plan) {
  EXPECT_TRUE(std::isfinite(plan.scale) && plan.scale > 0) << plan.scale;
  EXPECT_TRUE(std::isfinite(plan.soft_cap) && plan.soft_cap >= 0) << plan.soft_cap;
  EXPECT_TRUE(plan.window_after >= 0 && (plan.window_after == 0 || plan.window > 0));
  EXPECT_TRUE(plan.window >= 0 && plan.head_dim % 8 == 0 && plan.head_dim <= 1024);
  EXPECT_TRUE(plan.kv_heads > 0 && plan.heads % plan.kv_heads == 0);
  EXPECT_TRUE(std::isfinite(plan.position_beta) && plan.position_period >= 1);
}

void expect_sound(const MlaPlan& plan) {
  EXPECT_TRUE(std::isfinite(plan.scale) && plan.scale > 0) << plan.scale;
  EXPECT_TRUE(plan.v_dim >= 16 && plan.v_dim <= 1024) << plan.v_dim;
}

void expect_sound(const Mamba2Plan& plan) {
  EXPECT_TRUE(plan.groups > 0 && plan.heads % plan.groups == 0);
  EXPECT_TRUE(plan.head_dim % 16 == 0 && plan.head_dim <= 256) << plan.head_dim;
  EXPECT_TRUE(plan.state_dim % 16 == 0 && plan.state_dim <= 256) << plan.state_dim;
  EXPECT_TRUE(plan.conv_kernel >= 2 && plan.conv_kernel <= 8) << plan.conv_kernel;
}

void expect_sound(const AbsentPlan&) {}
void expect_sound(const GatedDeltaPlan&) {}
void expect_sound(const ShortConvPlan&) {}

// What the kernels check or divide by.
void expect_sound(const DecoderPlan& plan) {
  EXPECT_TRUE(plan.norm_eps >= 0 && plan.norm_eps <= 1) << plan.norm_eps;
  for (const float scale : {plan.embedding_scale, plan.residual_scale, plan.logit_scale})
    EXPECT_TRUE(std::isfinite(scale) && scale > 0) << scale;
  EXPECT_TRUE(std::isfinite(plan.final_soft_cap) && plan.final_soft_cap >= 0);
  if (plan.encoder) {
    const EncoderPlan& encoder = *plan.encoder;
    EXPECT_TRUE(encoder.first_position >= 0 && plan.max_context > 0);
    EXPECT_TRUE(encoder.positions.empty() ||
                encoder.first_position + plan.max_context <= encoder.position_rows);
    EXPECT_TRUE(encoder.token_types.empty() || encoder.type_rows > 0);
  }
  for (const RopePlan& rope : plan.ropes) {
    EXPECT_TRUE(std::isfinite(rope.magnitude) && rope.magnitude > 0) << rope.magnitude;
    for (const float frequency : rope.inverse_frequencies)
      EXPECT_TRUE(std::isfinite(frequency) && frequency >= 0) << frequency;
  }
  for (const LayerPlan& layer : plan.layers) {
    std::visit([](const auto& mixer) { expect_sound(mixer); }, layer.mixer);
    const MoePlan* moe = layer.moe();
    if (moe == nullptr) continue;
    EXPECT_TRUE(moe->choice.top_k >= 1 && moe->choice.top_k <= moe->choice.experts);
    EXPECT_TRUE(moe->choice.groups >= 1 && moe->choice.experts % moe->choice.groups == 0);
    EXPECT_TRUE(std::isfinite(moe->choice.scale) && moe->choice.scale > 0);
    EXPECT_TRUE(moe->intermediate > 0 && moe->shared_intermediate >= 0);
  }
  EXPECT_GT(plan.parameters(), 0u);
  EXPECT_EQ(plan.cache_specs(DType::kBFloat16, KvFormat::kPlain).size(), plan.layers.size());
  EXPECT_GE(plan.row_elements().size(), plan.layers.size());
  EXPECT_GE(plan.widest_input(), static_cast<uint64_t>(plan.hidden));
}

// Pointers to every number in `json`.
std::vector<Json::json_pointer> numbers_in(const Json& json) {
  std::vector<Json::json_pointer> found;
  const Json flat = json.flatten();
  for (const auto& [path, value] : flat.items())
    if (value.is_number()) found.emplace_back(path);
  return found;
}

TEST(HostileConfig, EveryNumberMayHaveAnyValue) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Json> values = {-1,
                                    0,
                                    1,
                                    3,
                                    0.5,
                                    -0.5,
                                    1e-320,
                                    1e308,
                                    1e30,
                                    -1e308,
                                    -infinity,
                                    infinity,
                                    1 << 20,
                                    1 << 24,
                                    2147483647,
                                    2147483648LL,
                                    1e18,
                                    nullptr,
                                    "64",
                                    Json::array(),
                                    true,
                                    std::nan(""),
                                    Json::object()};
  int refused = 0;
  int planned = 0;
  for (const Json& whole : whole_configs()) {
    ASSERT_EQ(plan_error_of(whole), "no error") << whole;
    for (const Json::json_pointer& number : numbers_in(whole)) {
      for (const Json& value : values) {
        Json json = whole;
        json[number] = value;
        SCOPED_TRACE(whole["model_type"].get<std::string>() + number.to_string() + " = " +
                     value.dump());
        try {
          expect_sound(plan_of(json));
          ++planned;
        } catch (const SetupError& error) {
          EXPECT_THAT(error.what(), HasSubstr("config.json"));
          ++refused;
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(planned, 500);
}

TEST(HostileConfig, TheErrorNamesTheFieldAndWhatIsAllowed) {
  const std::vector<std::pair<Json, const char*>> bad = {
      {base_json("gemma2", {{"query_pre_attn_scalar", -1}}),
       "\"query_pre_attn_scalar\" is -1; it must be above 0"},
      {base_json("gemma3_text", {{"final_logit_softcapping", -1}}), "\"final_logit_softcapping\""},
      {base_json("granite", {{"residual_multiplier", 0}}),
       "\"residual_multiplier\" is 0; it must be above 0"},
      {base_json("llama", {{"rms_norm_eps", -1}}), "\"rms_norm_eps\" is -1, outside 0 to 1"},
      {base_json("llama", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}}),
       "\"factor\" is 0; it must be above 0"},
      {base_json("llama", {{"rope_scaling",
                            {{"rope_type", "llama3"}, {"factor", 8}, {"high_freq_factor", 1}}}}),
       "\"high_freq_factor\" is 1; it must be above low_freq_factor 1"},
      {base_json("llama", {{"rope_theta", 1e308}}), "\"rope_theta\" is 1e+308, outside"},
      {base_json("gemma4_text", {{"global_head_dim", 20}, {"sliding_window_pattern", 2}}),
       "\"global_head_dim\" is 20; heads must be a multiple of 8"},
  };
  for (const auto& [json, message] : bad) EXPECT_THAT(plan_error_of(json), HasSubstr(message));
}

}  // namespace
}  // namespace octavo

#include "models/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/families/families.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::expect_setup_error;
using test_files::gguf_string;
using test_files::gguf_value;
using test_files::le;

constexpr uint32_t kUint32 = 4, kFloat = 6, kBool = 7, kText = 8, kArray = 9;

std::string text_value(std::string_view key, std::string_view value) {
  return gguf_string(key) + le(kText) + gguf_string(value);
}

template <typename T>
std::string array_value(std::string_view key, uint32_t type, const std::vector<T>& values) {
  std::string bytes = gguf_string(key) + le(kArray) + le(type) + le(uint64_t{values.size()});
  for (const T value : values) bytes += le(value);
  return bytes;
}

// A file with an embedding matrix of 8 x 64 and the keys that all architectures have; `more` is
// added to them.
std::string file_of(const std::string& architecture, const std::vector<std::string>& more,
                    const std::vector<std::string>& tensors = {}) {
  const std::string at = architecture + ".";
  test_files::GgufParts parts{
      .values = {text_value("general.architecture", architecture),
                 gguf_value(at + "block_count", kUint32, uint32_t{4}),
                 gguf_value(at + "embedding_length", kUint32, uint32_t{64}),
                 gguf_value(at + "context_length", kUint32, uint32_t{256}),
                 gguf_value(at + "attention.head_count", kUint32, uint32_t{4}),
                 gguf_value(at + "attention.layer_norm_rms_epsilon", kFloat, 1e-5f)},
      .tensors = {test_files::gguf_tensor("token_embd.weight", {64, 8}, test_files::kF32, 0)},
      .data_bytes = 4096};
  parts.values.insert(parts.values.end(), more.begin(), more.end());
  parts.tensors.insert(parts.tensors.end(), tensors.begin(), tensors.end());
  return parts.file();
}

Config config_of(std::string_view bytes) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    (std::string("gguf_config_") +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return config_from_gguf(Checkpoint::open(path));
}

std::vector<std::string> llama_keys() {
  return {gguf_value("llama.feed_forward_length", kUint32, uint32_t{128}),
          gguf_value("llama.attention.head_count_kv", kUint32, uint32_t{2})};
}

std::string llama_with(std::string value) {
  std::vector<std::string> keys = llama_keys();
  keys.push_back(std::move(value));
  return file_of("llama", keys);
}

TEST(GgufConfig, KeysHaveHuggingFacesNames) {
  const Config config = config_of(file_of("llama", llama_keys()));
  EXPECT_EQ(config.text("model_type"), "llama");
  EXPECT_EQ(config.integer("num_hidden_layers"), 4);
  EXPECT_EQ(config.integer("hidden_size"), 64);
  EXPECT_EQ(config.integer("intermediate_size"), 128);
  EXPECT_EQ(config.integer("num_key_value_heads"), 2);
  EXPECT_EQ(config.integer("head_dim"), 16);
  EXPECT_EQ(config.integer("vocab_size"), 8);
  EXPECT_EQ(config.number("rope_theta"), 10000);
  EXPECT_TRUE(config.boolean_or("tie_word_embeddings", false));
  EXPECT_NO_THROW(plan_model(config));
}

TEST(GgufConfig, AKeyThatIsNotReadIsRefusedByName) {
  for (const char* key : {"logit_scale", "attention.scale", "rope.scaling.alpha", "made_up"}) {
    expect_setup_error(
        [&] { config_of(llama_with(gguf_value("llama." + std::string(key), kFloat, 2.f))); },
        "the metadata key \"llama." + std::string(key) + "\" is not known for architecture");
  }
  EXPECT_NO_THROW(config_of(llama_with(gguf_value("llama.vocab_size", kUint32, uint32_t{8}))));
  EXPECT_NO_THROW(config_of(llama_with(text_value("someone.remark", "not an architecture"))));
}

TEST(GgufConfig, AKeyOfAnotherArchitectureIsRefused) {
  expect_setup_error([] { config_of(llama_with(gguf_value("granite.logit_scale", kFloat, 2.f))); },
                     "\"granite.logit_scale\" belongs to another architecture than \"llama\"");
}

TEST(GgufConfig, AnArrayMustHaveTheSameValueForEveryLayer) {
  const auto with_heads = [](std::vector<uint32_t> heads) {
    return file_of("llama", {gguf_value("llama.feed_forward_length", kUint32, uint32_t{128}),
                             array_value("llama.attention.head_count_kv", kUint32, heads)});
  };
  EXPECT_EQ(config_of(with_heads({2, 2, 2, 2})).integer("num_key_value_heads"), 2);
  expect_setup_error([&] { config_of(with_heads({2, 2, 4, 2})); }, "differs between layers");
}

TEST(GgufConfig, AFactorWithoutATypeIsLinear) {
  const Config config = config_of(llama_with(gguf_value("llama.rope.scaling.factor", kFloat, 4.f)));
  EXPECT_EQ(config.object("rope_scaling")->text("rope_type"), "linear");
  EXPECT_EQ(config.object("rope_scaling")->number("factor"), 4);
}

TEST(GgufConfig, ValuesThatChangeTheOutputAreRefused) {
  expect_setup_error(
      [] { config_of(llama_with(gguf_value("llama.rope.dimension_count", kUint32, uint32_t{8}))); },
      "heads of 16 must be rotated as a whole");
  expect_setup_error(
      [] {
        config_of(llama_with(gguf_value("llama.attention.value_length", kUint32, uint32_t{8})));
      },
      "differs from attention.key_length");
  expect_setup_error(
      [] { config_of(llama_with(text_value("llama.rope.scaling.type", "dynamic"))); },
      "\"llama.rope.scaling.type\" is \"dynamic\"");
  expect_setup_error(
      [] { config_of(llama_with(gguf_value("llama.attention.causal", kBool, uint8_t{0}))); },
      "only causal attention");
  expect_setup_error(
      [] {
        config_of(
            file_of("granite", {gguf_value("granite.feed_forward_length", kUint32, uint32_t{128}),
                                gguf_value("granite.rope.scaling.finetuned", kBool, uint8_t{0})}));
      },
      "without rope");
}

std::vector<std::string> qwen35_keys() {
  return {gguf_value("qwen35.feed_forward_length", kUint32, uint32_t{128}),
          gguf_value("qwen35.attention.head_count_kv", kUint32, uint32_t{2}),
          gguf_value("qwen35.nextn_predict_layers", kUint32, uint32_t{1}),
          gguf_value("qwen35.rope.dimension_count", kUint32, uint32_t{4}),
          gguf_value("qwen35.ssm.conv_kernel", kUint32, uint32_t{4}),
          gguf_value("qwen35.ssm.state_size", kUint32, uint32_t{16}),
          gguf_value("qwen35.ssm.group_count", kUint32, uint32_t{2}),
          gguf_value("qwen35.ssm.time_step_rank", kUint32, uint32_t{4}),
          gguf_value("qwen35.ssm.inner_size", kUint32, uint32_t{128}),
          array_value<uint8_t>("qwen35.attention.recurrent_layers", kBool, {1, 1, 0, 0})};
}

TEST(GgufConfig, LayersForMultiTokenPredictionAreNotCounted) {
  const Config config = config_of(file_of("qwen35", qwen35_keys()));
  EXPECT_EQ(config.integer("num_hidden_layers"), 3);
  EXPECT_EQ(config.integer("linear_value_head_dim"), 32);
  const DecoderPlan plan = plan_model(config);
  EXPECT_TRUE(std::holds_alternative<GatedDeltaPlan>(plan.layers[1].mixer));
  EXPECT_EQ(plan.ropes[0].inverse_frequencies.size(), 2u);  // 4 of the head's 16
}

std::string gemma4_file() {
  const std::vector<uint32_t> wide = {128, 128, 256, 256}, heads = {2, 2, 2, 2};
  return file_of(
      "gemma4",
      {array_value("gemma4.feed_forward_length", kUint32, wide),
       array_value("gemma4.attention.head_count_kv", kUint32, heads),
       array_value<uint8_t>("gemma4.attention.sliding_window_pattern", kBool, {1, 0, 1, 0}),
       gguf_value("gemma4.attention.sliding_window", kUint32, uint32_t{32}),
       gguf_value("gemma4.attention.shared_kv_layers", kUint32, uint32_t{2}),
       gguf_value("gemma4.attention.key_length", kUint32, uint32_t{32}),
       gguf_value("gemma4.attention.key_length_swa", kUint32, uint32_t{16}),
       gguf_value("gemma4.rope.freq_base_swa", kFloat, 10000.f)},
      {test_files::gguf_tensor("rope_freqs.weight", {16}, test_files::kF32, 2048),
       test_files::gguf_tensor("blk.1.attn_v.weight", {64, 1}, test_files::kF32, 2304)});
}

TEST(GgufConfig, ValuesPerLayerOfGemma4) {
  const Config config = config_of(gemma4_file());
  EXPECT_EQ(config.integer("head_dim"), 16);
  EXPECT_EQ(config.integer("global_head_dim"), 32);
  EXPECT_EQ(config.integer("intermediate_size"), 128);
  EXPECT_TRUE(config.boolean_or("use_double_wide_mlp", false));
  EXPECT_FALSE(config.boolean_or("attention_k_eq_v", true));
  EXPECT_EQ(config.texts("layer_types")[1], "full_attention");
}

// Layers of Mamba-2 of 4 heads of 32 and, by default, attention and an MLP.
std::string nemotron_file(const std::vector<uint32_t>& kv_heads = {0, 2, 0, 0},
                          const std::vector<uint32_t>& widths = {0, 0, 96, 0}) {
  return file_of("nemotron_h",
                 {array_value("nemotron_h.attention.head_count_kv", kUint32, kv_heads),
                  array_value("nemotron_h.feed_forward_length", kUint32, widths),
                  gguf_value("nemotron_h.attention.key_length", kUint32, uint32_t{8}),
                  gguf_value("nemotron_h.rope.dimension_count", kUint32, uint32_t{16}),
                  gguf_value("nemotron_h.ssm.conv_kernel", kUint32, uint32_t{4}),
                  gguf_value("nemotron_h.ssm.state_size", kUint32, uint32_t{16}),
                  gguf_value("nemotron_h.ssm.group_count", kUint32, uint32_t{2}),
                  gguf_value("nemotron_h.ssm.time_step_rank", kUint32, uint32_t{4}),
                  gguf_value("nemotron_h.ssm.inner_size", kUint32, uint32_t{128})});
}

TEST(GgufConfig, KvHeadsAndWidthsTellTheLayersOfNemotron) {
  const Config config = config_of(nemotron_file());
  EXPECT_EQ(config.text("hybrid_override_pattern"), "M*-M");
  EXPECT_EQ(config.integer("mamba_head_dim"), 32);
  EXPECT_EQ(config.integer("intermediate_size"), 96);
  const DecoderPlan plan = plan_model(config);
  EXPECT_EQ(std::get<Mamba2Plan>(plan.layers[3].mixer).norm_groups, 2);
  EXPECT_FALSE(plan.layers[1].attention().rope.has_value());
  expect_setup_error([] { config_of(nemotron_file({0, 2, 0, 0}, {0, 96, 0, 0})); },
                     "has a width for layer 1, which has attention");
  expect_setup_error([] { config_of(nemotron_file({0, 2, 4, 0}, {0, 0, 0, 96})); },
                     "differs between attention layers");
  expect_setup_error([] { config_of(nemotron_file({0, 2, 0, 0}, {0, 0, 96, 64})); },
                     "feed_forward_length\" differs between layers");
}

std::string granite_hybrid_file(uint32_t groups, bool rope) {
  const std::string at = "granitehybrid.";
  return file_of("granitehybrid",
                 {array_value<uint32_t>(at + "attention.head_count_kv", kUint32, {0, 0, 2, 0}),
                  gguf_value(at + "feed_forward_length", kUint32, uint32_t{96}),
                  gguf_value(at + "expert_count", kUint32, uint32_t{0}),
                  gguf_value(at + "rope.scaling.finetuned", kBool, uint8_t{rope}),
                  gguf_value(at + "ssm.conv_kernel", kUint32, uint32_t{4}),
                  gguf_value(at + "ssm.state_size", kUint32, uint32_t{16}),
                  gguf_value(at + "ssm.group_count", kUint32, groups),
                  gguf_value(at + "ssm.time_step_rank", kUint32, uint32_t{4}),
                  gguf_value(at + "ssm.inner_size", kUint32, uint32_t{128})});
}

TEST(GgufConfig, LayersAndRopeOfGraniteHybrids) {
  const DecoderPlan plan = plan_model(config_of(granite_hybrid_file(1, false)));
  EXPECT_TRUE(std::holds_alternative<Mamba2Plan>(plan.layers[1].mixer));
  EXPECT_FALSE(plan.layers[2].attention().rope.has_value());
  EXPECT_EQ(plan.layers[2].attention().scale, 0.25f);  // heads of 16
  EXPECT_EQ(plan.layers[1].mlp().intermediate, 96);
  const DecoderPlan rotated = plan_model(config_of(granite_hybrid_file(1, true)));
  EXPECT_TRUE(rotated.layers[2].attention().rope.has_value());
  expect_setup_error([] { config_of(granite_hybrid_file(2, false)); },
                     "\"granitehybrid.ssm.group_count\" must be 1");
}

TEST(GgufConfig, ExpertsOfGlm4MoeAreSelectedBySigmoid) {
  const auto with = [](std::string value) {
    std::vector<std::string> keys = {
        gguf_value("glm4moe.feed_forward_length", kUint32, uint32_t{128}),
        gguf_value("glm4moe.attention.head_count_kv", kUint32, uint32_t{2}),
        gguf_value("glm4moe.expert_count", kUint32, uint32_t{8}),
        gguf_value("glm4moe.expert_used_count", kUint32, uint32_t{2}),
        gguf_value("glm4moe.expert_feed_forward_length", kUint32, uint32_t{32}),
        gguf_value("glm4moe.nextn_predict_layers", kUint32, uint32_t{1}),
        std::move(value)};
    return file_of("glm4moe", keys);
  };
  const Config config =
      config_of(with(gguf_value("glm4moe.expert_weights_norm", kBool, uint8_t{1})));
  EXPECT_EQ(config.integer("num_hidden_layers"), 3);
  EXPECT_TRUE(plan_model(config).layers[0].moe()->choice.renormalize);
  const Config unnormed =
      config_of(with(gguf_value("glm4moe.expert_gating_func", kUint32, uint32_t{2})));
  EXPECT_FALSE(plan_model(unnormed).layers[0].moe()->choice.renormalize);
  expect_setup_error(
      [&] { config_of(with(gguf_value("glm4moe.expert_gating_func", kUint32, uint32_t{1}))); },
      "\"glm4moe.expert_gating_func\" is 1; only sigmoid (2) is supported");
}

// Any file is translated and planned, or refused with a SetupError. tools/battery.sh gguf_headers runs
// more of these, for every architecture.
TEST(GgufConfig, DamagedKeysNeverCrash) {
  constexpr int kRounds = 1000;
  for (const std::string& valid : {gemma4_file(), file_of("qwen35", qwen35_keys()), nemotron_file(),
                                   granite_hybrid_file(1, true)}) {
    EXPECT_GT(test_files::mutate(
                  valid,
                  [](const std::vector<std::byte>& bytes) {
                    const auto* begin = reinterpret_cast<const char*>(bytes.data());
                    plan_model(config_of({begin, bytes.size()}));
                  },
                  kRounds),
              0);
  }
}

std::vector<std::string> tables_of_bert(uint64_t types) {
  return {test_files::gguf_tensor("position_embd.weight", {64, 4}, test_files::kF32, 2048),
          test_files::gguf_tensor("token_types.weight", {64, types}, test_files::kF32, 3072)};
}

std::vector<std::string> keys_of_bert(bool causal) {
  return {gguf_value("bert.feed_forward_length", kUint32, uint32_t{128}),
          gguf_value("bert.attention.layer_norm_epsilon", kFloat, 1e-12f),
          gguf_value("bert.attention.causal", kBool, uint8_t{causal}),
          gguf_value("bert.pooling_type", kUint32, uint32_t{2})};
}

TEST(GgufConfig, OfAnEncoderHasItsTables) {
  for (const int types : {1, 2}) {
    const auto tables = tables_of_bert(static_cast<uint64_t>(types));
    const DecoderPlan plan = plan_model(config_of(file_of("bert", keys_of_bert(false), tables)));
    ASSERT_TRUE(plan.encoder.has_value());
    EXPECT_EQ(plan.encoder->position_rows, 4);
    EXPECT_EQ(plan.encoder->first_position, 0);  // also of XLM-RoBERTa
    EXPECT_EQ(plan.encoder->type_rows, types);
    EXPECT_EQ(plan.max_context, 4);
    EXPECT_EQ(plan.layers[0].mlp().activation, Activation::kGelu);
  }
  expect_setup_error([] { config_of(file_of("bert", keys_of_bert(true), tables_of_bert(2))); },
                     "attention.causal");
}

}  // namespace
}  // namespace octavo

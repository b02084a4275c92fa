#include "models/gguf/architectures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/families/families.h"
#include "models/format/gguf.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::gguf_string;
using test_files::le;
using testing::HasSubstr;

// The architecture of a file with this name.
const GgufArchitecture& named(std::string_view name) {
  const test_files::GgufParts parts{
      .values = {gguf_string("general.architecture") + le(uint32_t{8}) + gguf_string(name)}};
  const auto file = test_files::exact(parts.file());
  return gguf_architecture(parse_gguf(file, "m.gguf").metadata);
}

TEST(GgufArchitectures, EachHasItsOwnNameAndAFamily) {
  std::set<std::string_view> names;
  const auto families = known_model_types();
  for (const auto name : gguf_architecture_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(named(name).name, name);
    EXPECT_THAT(families, testing::Contains(std::string(named(name).model_type))) << name;
  }
}

TEST(GgufArchitectures, OthersAreRefusedByName) {
  for (const char* name : {"falcon", "mistral", "qwen4", "Llama", ""}) {
    test_files::expect_setup_error([&] { named(name); },
                                   "m.gguf: GGUF architecture \"" + std::string(name) +
                                       "\" is not supported; supported are bert, deepseek2,");
  }
}

TEST(GgufTensors, HuggingFaceNamesHaveTheirCounterpart) {
  const auto name_of = [](std::string_view architecture, std::string_view name) {
    return gguf_tensor(named(architecture), name).name;
  };
  EXPECT_EQ(name_of("llama", "model.layers.12.self_attn.q_proj.weight"), "blk.12.attn_q.weight");
  EXPECT_EQ(name_of("qwen3", "model.layers.0.self_attn.k_norm.weight"), "blk.0.attn_k_norm.weight");
  EXPECT_EQ(name_of("llama", "model.layers.3.post_attention_layernorm.weight"),
            "blk.3.ffn_norm.weight");
  EXPECT_EQ(name_of("gemma3", "model.layers.3.post_attention_layernorm.weight"),
            "blk.3.post_attention_norm.weight");
  EXPECT_EQ(name_of("llama", "model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(name_of("llama", "lm_head.weight"), "output.weight");
  EXPECT_EQ(name_of("lfm2", "model.norm.weight"), "token_embd_norm.weight");
  EXPECT_EQ(name_of("gpt-oss", "model.layers.1.self_attn.sinks"), "blk.1.attn_sinks.weight");
  EXPECT_EQ(name_of("nemotron_h", "model.layers.1.norm.weight"), "blk.1.attn_norm.weight");
  EXPECT_EQ(name_of("nemotron_h", "model.norm.weight"), "output_norm.weight");
  EXPECT_EQ(name_of("nemotron_h", "model.layers.1.mixer.D"), "blk.1.ssm_d");
  EXPECT_EQ(name_of("nemotron_h_moe", "model.layers.1.mixer.gate.weight"),
            "blk.1.ffn_gate_inp.weight");
  EXPECT_EQ(name_of("llama", "model.layers.1.something.else"), "blk.1.something.else");
  EXPECT_EQ(name_of("llama", "something.else"), "something.else");
}

TEST(GgufTensors, SomeStoreOtherValues) {
  EXPECT_EQ(gguf_tensor(named("qwen35"), "model.layers.0.linear_attn.A_log").values,
            GgufValues::kMinusExp);
  EXPECT_EQ(gguf_tensor(named("granitehybrid"), "model.layers.0.mamba.A_log").values,
            GgufValues::kMinusExp);
  EXPECT_EQ(gguf_tensor(named("qwen35"), "model.layers.0.linear_attn.dt_bias").values,
            GgufValues::kSame);
}

TEST(GgufTensors, OnlyLayersForMultiTokenPredictionAreSkipped) {
  EXPECT_TRUE(gguf_skips(named("qwen35"), "blk.4.attn_q.weight", 4));
  EXPECT_FALSE(gguf_skips(named("qwen35"), "blk.3.attn_q.weight", 4));
  EXPECT_FALSE(gguf_skips(named("qwen35"), "blk.x.attn_q.weight", 4));
  EXPECT_TRUE(gguf_skips(named("glm4moe"), "blk.4.nextn.eh_proj.weight", 4));
  EXPECT_FALSE(gguf_skips(named("llama"), "blk.4.attn_q.weight", 4));
  EXPECT_TRUE(gguf_skips(named("llama"), "rope_freqs.weight", 4));
  EXPECT_FALSE(gguf_skips(named("qwen3"), "rope_freqs.weight", 4));
}

}  // namespace
}  // namespace octavo

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/adapters/adapter_config.h"
#include "models/adapters/adapter_memory.h"
#include "models/adapters/adapter_row_bytes.h"
#include "models/adapters/adapter_targets.h"
#include "models/adapters/lora_weights.h"
#include "models/adapters/merged_adapter.h"
#include "models/adapters/metal_support.h"
#include "models/families/plan_of.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

nlohmann::json tiny_config(const char* type) {
  return {{"model_type", type},      {"vocab_size", 32},         {"hidden_size", 16},
          {"num_hidden_layers", 2},  {"num_attention_heads", 2}, {"num_key_value_heads", 1},
          {"intermediate_size", 24}, {"rms_norm_eps", 1e-5},     {"head_dim", 8}};
}

// Two layers of four experts of 8, with a shared one of 24.
nlohmann::json expert_config() {
  nlohmann::json config = tiny_config("qwen2_moe");
  config.erase("head_dim");
  config.update({{"num_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 8},
                 {"shared_expert_intermediate_size", 24},
                 {"decoder_sparse_step", 1},
                 {"norm_topk_prob", false}});
  return config;
}

TEST(AdapterTargets, HaveEveryProjectionOfADenseModel) {
  const AdapterTargets targets = adapter_targets(plan_of(tiny_config("qwen3")));
  EXPECT_EQ(targets.projections.size(), 16u);
  EXPECT_EQ(targets.modules.at("lm_head").outputs, 32);
  EXPECT_EQ(targets.modules.at("embed_tokens").parts[0].projection, targets.embedding);
  EXPECT_NE(targets.head, targets.embedding);
  EXPECT_EQ(targets.local_name("model.embed_tokens"), "embed_tokens");
  EXPECT_EQ(targets.local_name("lm_head"), "lm_head");
  EXPECT_EQ(targets.layers[1].qkv.size(), 3u);
  const AdapterModule& down = targets.modules.at("layers.1.mlp.down_proj");
  EXPECT_EQ(down.inputs, 24);
  EXPECT_EQ(down.outputs, 16);
  EXPECT_EQ(down.parts[0].projection, targets.layers[1].down);
  EXPECT_EQ(targets.local_name("model.layers.0.mlp.up_proj"), "layers.0.mlp.up_proj");
  EXPECT_EQ(targets.local_name("model.language_model.layers.0.x"), "layers.0.x");
  EXPECT_EQ(targets.local_name("vision_tower.layers.0.x"), "");
}

TEST(AdapterRowBytes, CountBothProductsOfEveryProjection) {
  nlohmann::json config = tiny_config("qwen3");
  config["num_hidden_layers"] = 6;
  const AdapterRowBytes row = adapter_row_bytes(adapter_targets(plan_of(config)), 4);
  constexpr uint64_t kOutputs = 16 + 8 + 8 + 16 + 24 + 24 + 16;  // q, k, v, o, gate, up, down
  EXPECT_EQ(row.widest_layer, (kOutputs + 7 * 4) * 4);
  EXPECT_EQ(row.all_layers, 6 * row.widest_layer);
  EXPECT_EQ(row.head, (32u + 4) * 4);
  EXPECT_EQ(adapter_step_bytes(row, 10, 3),
            10 * (4 * row.widest_layer + row.tables) + 2 * 3 * (row.head + row.tables));
  EXPECT_EQ(adapter_bytes_at_once(row, 10), 10 * (row.all_layers + row.tables));
}

TEST(AdapterRowBytes, CountTheRouterAndTheGateOfTheSharedExpert) {
  const AdapterRowBytes row = adapter_row_bytes(adapter_targets(plan_of(expert_config())), 4);
  // q, k, v, o; the shared expert's gate, up and down; the router and the gate
  constexpr uint64_t kOutputs = 16 + 8 + 8 + 16 + 24 + 24 + 16 + 4 + 1;
  EXPECT_EQ(row.widest_layer, (kOutputs + 9 * 4) * 4);
}

TEST(AdapterTargets, TiedEmbeddingsAreOneMatrix) {
  nlohmann::json config = tiny_config("qwen3");
  config["tie_word_embeddings"] = true;
  const AdapterTargets targets = adapter_targets(plan_of(config));
  EXPECT_EQ(targets.head, targets.embedding);
  EXPECT_FALSE(targets.modules.contains("lm_head"));
  EXPECT_TRUE(targets.modules.at("embed_tokens").is_table);
}

TEST(AdapterTargets, AFusedModuleHasTwoParts) {
  const AdapterTargets targets = adapter_targets(plan_of(tiny_config("phi3")));
  const AdapterModule& fused = targets.modules.at("layers.0.mlp.gate_up_proj");
  EXPECT_EQ(fused.outputs, 48);
  ASSERT_EQ(fused.parts.size(), 2u);
  EXPECT_EQ(fused.parts[0].projection, targets.layers[0].gate);
  EXPECT_EQ(fused.parts[1].order.front(), 24);
  EXPECT_EQ(targets.layers[0].qkv.size(), 1u);
}

TEST(AdapterTargets, InterleavedRowsAreReordered) {
  nlohmann::json config = tiny_config("glm4");
  config["partial_rotary_factor"] = 0.5;
  const AdapterTargets targets = adapter_targets(plan_of(config));
  const AdapterModule& k = targets.modules.at("layers.0.self_attn.k_proj");
  EXPECT_THAT(k.parts[0].order, ElementsAre(0, 2, 1, 3, 4, 5, 6, 7));
  EXPECT_TRUE(targets.modules.at("layers.0.self_attn.v_proj").parts[0].order.empty());
}

TEST(AdapterTargets, RoutersAndSharedExpertsAreAlwaysThere) {
  const DecoderPlan plan = plan_of(expert_config());
  const AdapterTargets targets = adapter_targets(plan);
  const LayerTargets& layer = targets.layers[1];
  EXPECT_EQ(targets.modules.at("layers.1.mlp.gate").parts[0].projection, layer.router);
  EXPECT_EQ(targets.projections[static_cast<size_t>(layer.router)].outputs, 4);
  EXPECT_EQ(targets.modules.at("layers.1.mlp.shared_expert_gate").outputs, 1);
  EXPECT_EQ(targets.modules.at("layers.1.mlp.shared_expert.up_proj").parts[0].projection, layer.up);
  EXPECT_EQ(layer.expert_down, -1);
  EXPECT_EQ(why_not_adapted(plan, targets, "layers.1.mlp.experts.0.up_proj", LoraUse::kServe),
            "LoRA on experts is off, because it takes much memory; start with --lora-experts");
  EXPECT_THAT(why_not_adapted(plan, targets, "layers.1.mlp.switch_mlp.up_proj", LoraUse::kMerge),
              testing::HasSubstr("not merged"));
  EXPECT_THAT(why_not_adapted(plan, targets, "layers.1.mlp.experts", LoraUse::kServe),
              testing::HasSubstr("target_parameters"));
  EXPECT_EQ(why_not_adapted(plan, targets, "layers.1.mlp.shared_expert.z", LoraUse::kServe),
            "this layer has no such linear module");
}

TEST(AdapterTargets, AnExpertIsNamedAloneAndInAStack) {
  const AdapterTargets targets = adapter_targets(plan_of(expert_config()), AdaptedExperts::kAll);
  const int down = targets.layers[0].expert_down;
  const AdaptedProjection& projection = targets.projections[static_cast<size_t>(down)];
  EXPECT_EQ(projection.experts, 4);
  EXPECT_EQ(projection.top_k, 2);
  EXPECT_EQ(projection.inputs, 8);
  EXPECT_EQ(projection.outputs, 16);
  const AdapterModule& one = targets.modules.at("layers.0.mlp.experts.3.down_proj");
  EXPECT_EQ(one.experts, 0);
  ASSERT_EQ(one.parts.size(), 1u);
  EXPECT_EQ(one.parts[0].projection, down);
  EXPECT_EQ(one.parts[0].expert, 3);
  const AdapterModule& all = targets.modules.at("layers.0.mlp.switch_mlp.down_proj");
  EXPECT_EQ(all.experts, 4);
  ASSERT_EQ(all.parts.size(), 4u);
  EXPECT_EQ(all.parts[2].expert, 2);
  EXPECT_FALSE(targets.modules.contains("layers.0.mlp.experts.4.down_proj"));
}

TEST(AdapterTargets, ExpertsWithoutAGateHaveOneFirstProjection) {
  MoePlan moe{.choice = {.experts = 2, .top_k = 1}, .intermediate = 8, .gated = false};
  DecoderPlan plan = plan_of(tiny_config("qwen3"));
  plan.layers[0].ffn = moe;
  const AdapterTargets targets = adapter_targets(plan, AdaptedExperts::kAll);
  EXPECT_EQ(targets.layers[0].expert_gate, targets.layers[0].expert_up);
  EXPECT_TRUE(targets.modules.contains("layers.0.mlp.switch_mlp.fc1"));
  EXPECT_TRUE(targets.modules.contains("layers.0.mlp.experts.1.up_proj"));
  EXPECT_FALSE(targets.modules.contains("layers.0.mlp.experts.1.gate_proj"));
}

TEST(AdapterMemory, CountsEveryExpert) {
  const DecoderPlan plan = plan_of(expert_config());
  const AdapterTargets few = adapter_targets(plan);
  const AdapterTargets all = adapter_targets(plan, AdaptedExperts::kAll);
  const uint64_t more =
      adapter_bytes(all, DType::kFloat32, 3, 16) - adapter_bytes(few, DType::kFloat32, 3, 16);
  // At least A and B of three projections of four experts in two layers.
  EXPECT_GE(more, 3u * 2 * 4 * 3 * 16 * (16 + 8) * sizeof(float));
  const AdapterMemory memory(all, DType::kFloat32, 3, 16);
  EXPECT_EQ(memory.bytes(), adapter_bytes(all, DType::kFloat32, 3, 16));
  EXPECT_GT(adapter_scratch_bytes(all, 64, 3, 16), adapter_scratch_bytes(few, 64, 3, 16));
  EXPECT_GT(largest_lora_file(all, 16), largest_lora_file(few, 16));
}

TEST(AdapterMemory, WritesAndReplacesTheMatricesOfExperts) {
  const AdapterTargets targets = adapter_targets(plan_of(expert_config()), AdaptedExperts::kAll);
  AdapterMemory memory(targets, DType::kFloat32, 2, 4);
  std::vector<float> a(4 * 2 * 16),
      b(4 * 8 * 2);  // [experts, rank, inputs], [experts, outputs, rank]
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(1000 + i);
  const auto bytes_of = [](const std::vector<float>& values) {
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    return std::vector<std::byte>(data, data + values.size() * sizeof(float));
  };
  memory.write(1, {.modules = {{.name = "layers.0.mlp.switch_mlp.up_proj",
                                .rank = 2,
                                .scale = 3,
                                .a = bytes_of(a),
                                .b = bytes_of(b)}}});
  const LoraMatrices& up = memory.matrices(targets.layers[0].expert_up);
  EXPECT_EQ(up.slots[3].rank, 0);
  ASSERT_EQ(up.slots[4 + 3].rank, 2);
  EXPECT_EQ(up.slots[4 + 3].scale, 3);
  EXPECT_EQ(lora_a(up, 4 + 3).data<float>()[0], 3 * 2 * 16);
  EXPECT_EQ(lora_b(up, 4 + 3).data<float>()[1], 1000 + 3 * 8 * 2 + 1);
  memory.write(1, {.modules = {{.name = "layers.0.mlp.experts.2.up_proj",
                                .rank = 2,
                                .a = bytes_of(std::vector<float>(2 * 16)),
                                .b = bytes_of(std::vector<float>(8 * 2))}}});
  EXPECT_EQ(up.slots[4 + 2].rank, 2);
  EXPECT_EQ(up.slots[4 + 3].rank, 0);
}

TEST(AdapterTargets, MetalDoesNotServeEmbeddings) {
  const AdapterTargets targets = adapter_targets(plan_of(tiny_config("qwen3")));
  LoraWeights weights{.modules = {{.name = "lm_head"}, {.name = "layers.0.mlp.up_proj"}}};
  check_metal_serves(weights, targets);
  weights.modules.push_back({.name = "embed_tokens"});
  test_files::expect_setup_error([&] { check_metal_serves(weights, targets); }, "--device cpu");
}

TEST(AdapterConfig, ScalesFollowRankAndPatterns) {
  const auto read = [](const nlohmann::json& json) {
    return read_adapter_config(json.dump(), "adapter_config.json", AdapterFormat::kPeft);
  };
  const nlohmann::json plain = {{"r", 4}, {"lora_alpha", 8}};
  EXPECT_EQ(read(plain).scale_of("layers.0.self_attn.q_proj"), 2);
  nlohmann::json json = plain;
  json["use_rslora"] = true;
  EXPECT_EQ(read(json).scale_of("layers.0.self_attn.q_proj"), 4);
  json = plain;
  json["rank_pattern"] = {{"q_proj", 16}};
  json["alpha_pattern"] = {{"layers.1.self_attn.q_proj", 32}};
  const AdapterConfig config = read(json);
  EXPECT_EQ(config.rank_of("layers.0.self_attn.q_proj"), 16);
  EXPECT_EQ(config.rank_of("layers.0.self_attn.k_proj"), 4);
  EXPECT_EQ(config.scale_of("layers.0.self_attn.q_proj"), 0.5);
  EXPECT_EQ(config.scale_of("layers.1.self_attn.q_proj"), 2);
  EXPECT_EQ(config.rank_of("layers.0.self_attn.xq_proj"), 4);  // whole names only
}

class LoraFile : public testing::Test {
 protected:
  LoraFile() : folder_(fs::path(testing::TempDir()) / "lora_file_test") {
    fs::create_directories(folder_);
    write("adapter_config.json", R"({"r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]})");
    write("adapter_model.safetensors", tensors());
  }
  ~LoraFile() override { fs::remove_all(folder_); }

  static std::string tensors() {
    const std::string at = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    const nlohmann::json header = {
        {at + "A.weight", {{"dtype", "F32"}, {"shape", {2, 16}}, {"data_offsets", {0, 128}}}},
        {at + "B.weight", {{"dtype", "F16"}, {"shape", {16, 2}}, {"data_offsets", {128, 192}}}}};
    std::string file = test_files::safetensors_file(header.dump(), 0);
    return file + std::string(192, '\0');
  }
  void write(const char* name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  LoraWeights read() {
    return read_lora(folder_, plan_, targets_, {.max_rank = 8, .dtype = DType::kBFloat16});
  }

  fs::path folder_;
  DecoderPlan plan_ = plan_of(tiny_config("llama"));
  AdapterTargets targets_ = adapter_targets(plan_);
};

TEST_F(LoraFile, IsConvertedToTheModelsType) {
  const LoraWeights weights = read();
  ASSERT_EQ(weights.modules.size(), 1u);
  EXPECT_EQ(weights.modules[0].name, "layers.0.self_attn.q_proj");
  EXPECT_EQ(weights.modules[0].scale, 2);
  EXPECT_EQ(weights.modules[0].a.size(), 64u);
  EXPECT_EQ(weights.modules[0].b.size(), 64u);
}

TEST_F(LoraFile, TheDigestChangesWithEitherFile) {
  const Sha256Digest first = read().digest;
  EXPECT_EQ(read().digest, first);
  write("adapter_config.json", R"({"r": 2, "lora_alpha": 5, "target_modules": ["q_proj"]})");
  const Sha256Digest second = read().digest;
  EXPECT_NE(second, first);
  std::string changed = tensors();
  changed.back() = 1;
  write("adapter_model.safetensors", changed);
  EXPECT_NE(read().digest, second);
}

TEST_F(LoraFile, IsMergedIntoTheRowsThatAreLoaded) {
  MergedAdapter adapter(folder_, plan_);
  const std::string module = "model.layers.0.self_attn.q_proj";
  EXPECT_FALSE(adapter.changes("model.layers.1.self_attn.q_proj", {}));
  ASSERT_TRUE(adapter.changes(module, {}));
  test_files::expect_setup_error([&] { adapter.check_complete(); }, "q_proj");
  std::vector<float> matrix(16 * 16);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  const WeightView view{
      .rows = 16, .cols = 16, .data = reinterpret_cast<const std::byte*>(matrix.data())};
  std::vector<int> order(16);
  for (int i = 0; i < 16; ++i) order[static_cast<size_t>(i)] = 15 - i;
  const std::vector<std::byte> merged = adapter.merge(module, view, order);  // A and B are zero
  ASSERT_EQ(merged.size(), matrix.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(merged.data(), matrix.data() + 15 * 16, 16 * sizeof(float)), 0);
  adapter.check_complete();
}

TEST_F(LoraFile, AFileThatIsTooLargeIsNotRead) {
  fs::resize_file(folder_ / "adapter_model.safetensors", 1ull << 36);  // sparse
  test_files::expect_setup_error([&] { read(); }, "--max-lora-rank");
}

TEST_F(LoraFile, DamagedFilesAreRefusedOrRead) {
  const int refused = test_files::mutate(
      tensors(),
      [&](const std::vector<std::byte>& bytes) {
        write("adapter_model.safetensors",
              {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        read();
      },
      500);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace octavo

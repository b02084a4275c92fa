#include "models/vision/find_vision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using Shapes = std::map<std::string, std::vector<int64_t>>;

constexpr int kTextHidden = 24;

// A linear layer or a norm.
void add(Shapes& shapes, const std::string& module, std::vector<int64_t> shape, bool biased) {
  if (biased) shapes[module + ".bias"] = {shape.front()};
  shapes[module + ".weight"] = std::move(shape);
}

struct Model {
  Json config;
  Json processor;
  Shapes tensors;
};

Model qwen() {
  Model model{
      .config = {{"model_type", "qwen3_5"},
                 {"image_token_id", 5},
                 {"vision_start_token_id", 6},
                 {"vision_end_token_id", 7},
                 {"text_config", {{"hidden_size", kTextHidden}}},
                 {"vision_config",
                  {{"depth", 1},
                   {"hidden_size", 16},
                   {"num_heads", 2},
                   {"intermediate_size", 32},
                   {"patch_size", 4},
                   {"out_hidden_size", kTextHidden},
                   {"num_position_embeddings", 9}}}},
      .processor = {{"patch_size", 4}, {"size", {{"shortest_edge", 64}, {"longest_edge", 4096}}}},
      .tensors = {}};
  const std::string at = "model.visual.";
  add(model.tensors, at + "patch_embed.proj", {16, 3, 2, 4, 4}, true);
  model.tensors[at + "pos_embed.weight"] = {9, 16};
  for (const char* norm : {"blocks.0.norm1", "blocks.0.norm2", "merger.norm"})
    add(model.tensors, at + norm, {16}, true);
  add(model.tensors, at + "blocks.0.attn.qkv", {48, 16}, true);
  add(model.tensors, at + "blocks.0.attn.proj", {16, 16}, true);
  add(model.tensors, at + "blocks.0.mlp.linear_fc1", {32, 16}, true);
  add(model.tensors, at + "blocks.0.mlp.linear_fc2", {16, 32}, true);
  add(model.tensors, at + "merger.linear_fc1", {64, 64}, true);
  add(model.tensors, at + "merger.linear_fc2", {kTextHidden, 64}, true);
  return model;
}

Model qwen3_vl() {
  Model model = qwen();
  model.config["model_type"] = "qwen3_vl";
  model.config["vision_config"]["deepstack_visual_indexes"] = {0};
  const std::string at = "model.visual.deepstack_merger_list.0.";
  add(model.tensors, at + "norm", {64}, true);
  add(model.tensors, at + "linear_fc1", {64, 64}, true);
  add(model.tensors, at + "linear_fc2", {kTextHidden, 64}, true);
  return model;
}

Model gemma4() {
  Model model{.config = {{"model_type", "gemma4"},
                         {"image_token_id", 5},
                         {"boi_token_id", 6},
                         {"eoi_token_id", 7},
                         {"text_config", {{"use_bidirectional_attention", "vision"}}},
                         {"vision_config",
                          {{"num_hidden_layers", 1},
                           {"hidden_size", 16},
                           {"num_attention_heads", 2},
                           {"num_key_value_heads", 1},
                           {"head_dim", 8},
                           {"intermediate_size", 32},
                           {"patch_size", 4},
                           {"position_embedding_size", 210},
                           {"use_clipped_linears", true},
                           {"standardize", true}}}},
              .processor = {{"image_processor", {{"max_soft_tokens", 70}, {"patch_size", 4}}}},
              .tensors = {}};
  const std::string at = "model.vision_tower.";
  Shapes& tensors = model.tensors;
  add(tensors, at + "patch_embedder.input_proj", {16, 48}, false);
  tensors[at + "patch_embedder.position_embedding_table"] = {2, 210, 16};
  const std::string layer = at + "encoder.layers.0.";
  for (const char* norm : {"input", "post_attention", "pre_feedforward", "post_feedforward"})
    add(tensors, fmt::format("{}{}_layernorm", layer, norm), {16}, false);
  add(tensors, layer + "self_attn.q_norm", {8}, false);
  add(tensors, layer + "self_attn.k_norm", {8}, false);
  const auto clipped = [&](const std::string& name, int rows, int cols) {
    add(tensors, layer + name + ".linear", {rows, cols}, false);
    for (const char* end : {".input_min", ".input_max", ".output_min", ".output_max"})
      tensors[layer + name + end] = {};
  };
  clipped("self_attn.q_proj", 16, 16);
  clipped("self_attn.k_proj", 8, 16);
  clipped("self_attn.v_proj", 8, 16);
  clipped("self_attn.o_proj", 16, 16);
  clipped("mlp.gate_proj", 32, 16);
  clipped("mlp.up_proj", 32, 16);
  clipped("mlp.down_proj", 16, 32);
  tensors[at + "std_bias"] = tensors[at + "std_scale"] = {16};
  add(tensors, "model.embed_vision.embedding_projection", {kTextHidden, 16}, false);
  return model;
}

Model gemma3() {
  Model model{.config = {{"model_type", "gemma3"},
                         {"image_token_index", 5},
                         {"boi_token_index", 6},
                         {"eoi_token_index", 7},
                         {"mm_tokens_per_image", 4},
                         {"vision_config",
                          {{"num_hidden_layers", 1},
                           {"hidden_size", 16},
                           {"num_attention_heads", 2},
                           {"intermediate_size", 32},
                           {"patch_size", 4},
                           {"image_size", 16}}}},
              .processor = {{"size", {{"height", 16}, {"width", 16}}}},
              .tensors = {}};
  const std::string at = "vision_tower.vision_model.";
  Shapes& tensors = model.tensors;
  add(tensors, at + "embeddings.patch_embedding", {16, 3, 4, 4}, true);
  tensors[at + "embeddings.position_embedding.weight"] = {16, 16};
  const std::string layer = at + "encoder.layers.0.";
  for (const std::string& norm :
       {layer + "layer_norm1", layer + "layer_norm2", at + "post_layernorm"})
    add(tensors, norm, {16}, true);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    add(tensors, layer + "self_attn." + name, {16, 16}, true);
  add(tensors, layer + "mlp.fc1", {32, 16}, true);
  add(tensors, layer + "mlp.fc2", {16, 32}, true);
  add(tensors, "multi_modal_projector.mm_soft_emb_norm", {16}, false);
  tensors["multi_modal_projector.mm_input_projection_weight"] = {16, kTextHidden};
  return model;
}

Model mistral3() {
  Model model{.config = {{"model_type", "mistral3"},
                         {"image_token_index", 5},
                         {"text_config", {{"rms_norm_eps", 1e-6}}},
                         {"vision_config",
                          {{"num_hidden_layers", 1},
                           {"hidden_size", 16},
                           {"num_attention_heads", 2},
                           {"intermediate_size", 32},
                           {"patch_size", 4},
                           {"image_size", 64},
                           {"hidden_act", "silu"}}}},
              .processor = {{"patch_size", 4}, {"size", {{"longest_edge", 64}}}},
              .tensors = {}};
  const std::string at = "vision_tower.";
  Shapes& tensors = model.tensors;
  add(tensors, at + "patch_conv", {16, 3, 4, 4}, false);
  const std::string layer = at + "transformer.layers.0.";
  for (const std::string& norm : {at + "ln_pre", layer + "attention_norm", layer + "ffn_norm",
                                  std::string("multi_modal_projector.norm")})
    add(tensors, norm, {16}, false);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(tensors, layer + "attention." + name, {16, 16}, false);
  add(tensors, layer + "feed_forward.gate_proj", {32, 16}, false);
  add(tensors, layer + "feed_forward.up_proj", {32, 16}, false);
  add(tensors, layer + "feed_forward.down_proj", {16, 32}, false);
  add(tensors, "multi_modal_projector.patch_merger.merging_layer", {16, 64}, false);
  add(tensors, "multi_modal_projector.linear_1", {kTextHidden, 16}, false);
  add(tensors, "multi_modal_projector.linear_2", {kTextHidden, kTextHidden}, false);
  return model;
}

const std::vector<Model (*)()> kModels = {qwen, qwen3_vl, gemma4, gemma3, mistral3};

uint64_t elements(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t size : shape) count *= static_cast<uint64_t>(size);
  return count;
}

class FindVision : public testing::Test {
 protected:
  ~FindVision() override { std::filesystem::remove_all(folder_); }

  FoundVision find(const Model& model, std::string_view kwargs = {}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json") << model.config;
    const bool is_whole = model.processor.contains("image_processor");
    std::ofstream(folder_ / (is_whole ? "processor_config.json" : "preprocessor_config.json"))
        << model.processor;
    const Json tokens = {{"10", {{"content", "[IMG_BREAK]"}}}, {"11", {{"content", "[IMG_END]"}}}};
    std::ofstream(folder_ / "tokenizer_config.json")
        << (has_decoder_ ? Json{{"added_tokens_decoder", tokens}} : Json::object());
    std::ofstream(folder_ / "tokenizer.json") << Json{
        {"model", {{"vocab", {{"a", 0}}}}},
        {"added_tokens",
         {{{"id", 12}, {"content", "[IMG_BREAK]"}}, {{"id", 13}, {"content", "[IMG_END]"}}}}};
    Json header;
    uint64_t offset = 0;
    for (const auto& [name, shape] : model.tensors) {
      const uint64_t end = offset + 4 * elements(shape);
      header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, end}}};
      offset = end;
    }
    header["model.embed_tokens.weight"] = {
        {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {offset, offset + 4}}};
    std::ofstream(folder_ / "model.safetensors", std::ios::binary)
        << test_files::safetensors_file(header.dump(), offset + 4);
    const Checkpoint checkpoint = Checkpoint::open(folder_);
    DecoderPlan text;
    text.hidden = kTextHidden;
    text.vocab = 64;
    text.layers.resize(2);
    return find_vision(checkpoint, text, kwargs);
  }

  std::string absent(const Model& model) {
    const FoundVision found = find(model);
    EXPECT_EQ(found.plan.has_value(), found.absent.empty());
    return found.absent;
  }

  bool has_decoder_ = true;  // tokenizer_config.json has the tokens, too

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "octavo_find_vision_test";
};

TEST_F(FindVision, EachFamilyIsFound) {
  for (const auto make : kModels) {
    const Model model = make();
    SCOPED_TRACE(model.config["model_type"].get<std::string>());
    const FoundVision found = find(model);
    ASSERT_TRUE(found.plan) << found.absent;
    EXPECT_EQ(found.plan->image_token, 5);
    EXPECT_EQ(found.plan->text_hidden, kTextHidden);
    uint64_t parameters = 0;
    for (const auto& [name, shape] : model.tensors) {
      parameters += elements(shape);
      EXPECT_TRUE(found.plan->shape.owns(name)) << name;
    }
    EXPECT_EQ(found.plan->parameters, parameters);
    EXPECT_GE(found.plan->weights_bytes, 4 * parameters);
    EXPECT_FALSE(found.plan->shape.owns("model.embed_tokens.weight"));
  }
}

TEST_F(FindVision, TokensAndMasksAreThoseOfTheFamily) {
  const VisionPlan qwen_plan = *find(qwen()).plan;
  EXPECT_EQ(qwen_plan.begin_token, 6);
  EXPECT_EQ(qwen_plan.end_token, 7);
  EXPECT_EQ(qwen_plan.break_token, -1);
  EXPECT_FALSE(qwen_plan.sees_block);
  EXPECT_EQ(qwen_plan.describe(), "Qwen, 1 layers of 16, patches of 4");
  EXPECT_TRUE(find(gemma3()).plan->sees_block);
  Model causal = gemma4();
  EXPECT_TRUE(find(causal).plan->sees_block);
  causal.config["text_config"] = {{"use_bidirectional_attention", nullptr}};
  EXPECT_FALSE(find(causal).plan->sees_block);
  const VisionPlan mistral = *find(mistral3()).plan;
  EXPECT_EQ(mistral.begin_token, -1);
  EXPECT_EQ(mistral.break_token, 10);
  EXPECT_EQ(mistral.end_token, 11);
}

TEST_F(FindVision, TokensOfLinesMayBeInTheTokenizerOnly) {
  has_decoder_ = false;
  const FoundVision found = find(mistral3());
  ASSERT_TRUE(found.plan) << found.absent;
  EXPECT_EQ(found.plan->break_token, 12);
  EXPECT_EQ(found.plan->end_token, 13);
}

TEST_F(FindVision, MlxNamesAndConvolutionsAreFound) {
  Model model = qwen();
  Shapes renamed;
  for (auto& [name, shape] : model.tensors)
    renamed["vision_tower." + name.substr(std::string("model.visual.").size())] = shape;
  renamed["vision_tower.patch_embed.proj.weight"] = {16, 2, 4, 4, 3};
  model.tensors = std::move(renamed);
  const FoundVision found = find(model);
  ASSERT_TRUE(found.plan) << found.absent;
  EXPECT_EQ(found.plan->shape.tower, "vision_tower.");
  EXPECT_TRUE(found.plan->shape.channels_last);
}

TEST_F(FindVision, WithoutATowerTheReasonNamesATensor) {
  for (const auto make : kModels) {
    Model model = make();
    model.tensors = {{"model.norm.weight", {kTextHidden}}};
    EXPECT_THAT(absent(model), HasSubstr("no tensor is named"));
  }
  Model text = qwen();
  text.config.erase("vision_config");
  EXPECT_EQ(absent(text), "the model takes text only");
}

TEST_F(FindVision, AMissingOrMisshapenTensorIsTheReason) {
  for (const auto make : kModels) {
    const Model whole = make();
    for (const auto& [name, shape] : whole.tensors) {
      Model model = whole;
      model.tensors.erase(name);
      EXPECT_THAT(absent(model), HasSubstr(name));
      model.tensors[name] = {7};
      EXPECT_THAT(absent(model), HasSubstr(name));
    }
  }
}

// Numbers of a config are untrusted: whatever they are, the text can be served.
TEST_F(FindVision, HostileValuesAreTheReason) {
  const std::vector<Json> values = {
      -1, 0, 3, 1e30, 2147483648, "x", Json::array({1}), true, Json::object()};
  for (const auto make : kModels) {
    const Model whole = make();
    for (const auto& [key, good] : whole.config["vision_config"].items()) {
      for (const Json& value : values) {
        Model model = whole;
        if (value == good) continue;
        model.config["vision_config"][key] = value;
        SCOPED_TRACE(fmt::format("{} = {}", key, value.dump()));
        find(model);  // does not throw
      }
      Model model = whole;
      model.config["vision_config"][key] = "x";
      EXPECT_THAT(absent(model), HasSubstr(key));
    }
  }
  Model model = qwen();
  model.config["image_token_id"] = 64;  // the size of the vocabulary
  EXPECT_THAT(absent(model), HasSubstr("image_token_id"));
  model = qwen();
  model.config["vision_config"]["deepstack_visual_indexes"] = {0};
  EXPECT_THAT(absent(model), HasSubstr("deepstack"));
  for (const Json& layers : {Json{1}, Json{0, 0}, Json{0, 1, 2}}) {
    model = qwen3_vl();
    model.config["vision_config"]["depth"] = layers.size() > 1 ? 3 : 1;
    model.config["vision_config"]["deepstack_visual_indexes"] = layers;
    EXPECT_THAT(absent(model), HasSubstr("deepstack_visual_indexes")) << layers;
  }
  model = qwen();
  model.config["model_type"] = "llava";
  EXPECT_THAT(absent(model), HasSubstr("llava"));
}

TEST_F(FindVision, DeepstackAddsPartsToTheRows) {
  EXPECT_EQ(find(qwen()).plan->row_width(), kTextHidden);
  const VisionPlan plan = *find(qwen3_vl()).plan;
  EXPECT_EQ(plan.row_parts(), 2);
  EXPECT_EQ(plan.row_width(), 2 * kTextHidden);
  EXPECT_EQ(plan.text_hidden, kTextHidden);
  Model usual = qwen3_vl();
  usual.config["vision_config"].erase("deepstack_visual_indexes");
  EXPECT_THAT(absent(usual), HasSubstr("deepstack_visual_indexes")) << "8, 16 and 24";
  Model none = qwen3_vl();
  none.config["vision_config"]["deepstack_visual_indexes"] = Json::array();
  EXPECT_EQ(find(none).plan->row_parts(), 1);
}

TEST_F(FindVision, KwargsChangeTheProcessor) {
  const VisionPlan plan = *find(qwen(), R"({"max_pixels": 1024, "min_pixels": 128})").plan;
  EXPECT_EQ(plan.processor.max_pixels, 1024);
  EXPECT_EQ(plan.processor.min_pixels, 128);
  EXPECT_EQ(find(gemma4(), R"({"max_soft_tokens": 70})").plan->processor.max_tokens, 70);
  EXPECT_EQ(find(qwen(), R"({"size": {"longest_edge": 2048}})").plan->processor.min_pixels, 64);
}

TEST_F(FindVision, KwargsThatAreNotValidAreErrors) {
  const std::map<std::string, std::string> cases = {
      {"[]", "not a JSON object"},
      {"{", "not a JSON object"},
      {R"({"max_pixel": 1})", "\"max_pixel\" is not known"},
      {R"({"max_pixels": "many"})", "max_pixels"},
      {R"({"merge_size": 4})", "the model's patches cannot be changed"}};
  for (const auto& [kwargs, reason] : cases) {
    try {
      find(qwen(), kwargs);
      ADD_FAILURE() << kwargs;
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--mm-processor-kwargs: "));
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
}

TEST(VisionPlan, APassHasThePiecesOfItsChunks) {
  VisionPlan plan;
  plan.processor.merge = 2;
  plan.shape.layers = 3;
  EXPECT_EQ(plan.pieces(4, 4, 16), 2 + 3);  // one chunk
  EXPECT_EQ(plan.pieces(4, 4, 1 << 20), 2 + 3);
  EXPECT_EQ(plan.pieces(4, 4, 15), 2 * 2 + 3 * 4);  // 12 and 4 patches
  EXPECT_EQ(plan.pieces(4, 4, 1), 2 * 4 + 3 * 8);   // a token at a time
  const uint64_t bytes = plan.pass_bytes(4, 4, 15, DType::kFloat32);
  plan.text_hidden = 1 << 16;
  const uint64_t with_rows = plan.pass_bytes(4, 4, 15, DType::kFloat32);
  plan.shape.deepstack = {0, 2};
  EXPECT_EQ(plan.pieces(4, 4, 16), 2 + 3 + 2);
  EXPECT_EQ(plan.pieces(4, 4, 15), 2 * 2 + 3 * 4 + 2 * 2);
  EXPECT_GT(with_rows, bytes);
  EXPECT_GT(plan.pass_bytes(4, 4, 15, DType::kFloat32), with_rows);
}

}  // namespace
}  // namespace octavo

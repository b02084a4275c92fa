#include "models/vision/vision_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr int kMostTowerLayers = 256;
constexpr int kMostHidden = 1 << 14;
constexpr int kMostHeads = 512;
constexpr int kHeadDimStep = 8;
constexpr int kMostHeadDim = 256;
constexpr int kMostPositions = 1 << 20;

Activation read_activation(const Config& config, const char* key, const char* fallback) {
  const std::string name = config.text_or(key, fallback);
  if (name == "gelu_pytorch_tanh" || name == "gelu_tanh" || name == "gelu_new")
    return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGelu;
  if (name == "silu" || name == "swish") return Activation::kSilu;
  config.fail(key,
              fmt::format("is \"{}\"; only gelu, gelu_pytorch_tanh and silu are supported", name));
}

// What a family's config.json may leave out.
struct TowerDefaults {
  int layers, hidden, heads, intermediate;
};

void read_sizes(const Config& vision, const char* layers, const char* heads,
                const TowerDefaults& defaults, VisionShape& shape) {
  shape.layers = vision.integer_or(layers, defaults.layers, 1, kMostTowerLayers);
  shape.hidden = vision.integer_or("hidden_size", defaults.hidden, 8, kMostHidden);
  shape.heads = shape.kv_heads = vision.integer_or(heads, defaults.heads, 1, kMostHeads);
  shape.intermediate =
      vision.integer_or("intermediate_size", defaults.intermediate, 8, 8 * kMostHidden);
}

void check_head_dim(const Config& vision, const char* key, VisionShape& shape) {
  if (shape.head_dim < kHeadDimStep || shape.head_dim > kMostHeadDim ||
      shape.head_dim % kHeadDimStep != 0) {
    vision.fail(key, fmt::format("gives heads of {}; they must be a multiple of {}, at most {}",
                                 shape.head_dim, kHeadDimStep, kMostHeadDim));
  }
}

void divide_into_heads(const Config& vision, const char* key, VisionShape& shape) {
  if (shape.hidden % shape.heads != 0)
    vision.fail(key, fmt::format("is {}, which does not divide hidden_size, {}", shape.heads,
                                 shape.hidden));
  shape.head_dim = shape.hidden / shape.heads;
  check_head_dim(vision, key, shape);
}

void require_three_channels(const Config& vision, const char* key) {
  if (vision.integer_or(key, 3, 1, 64) != 3) vision.fail(key, "is not 3, the channels of an image");
}

// A rope base below 1 would turn by ever larger angles.
float rope_theta_of(const Config& vision, double fallback) {
  constexpr double kLeast = 1;
  constexpr double kMost = 1e12;
  double theta = vision.number_or("rope_theta", fallback, kLeast, kMost);
  if (const auto rope = vision.object("rope_parameters"))
    theta = rope->number_or("rope_theta", theta, kLeast, kMost);
  return static_cast<float>(theta);
}

int token_of(const Config& whole, const DecoderPlan& text, const char* key, const char* other) {
  const char* name = whole.has(key) || other == nullptr ? key : other;
  return whole.integer(name, 0, text.vocab - 1);
}

// The layers whose outputs are added to the first layers of the language model, one each.
std::vector<int> read_deepstack(const Config& whole, const Config& vision, const DecoderPlan& text,
                                int tower_layers) {
  constexpr const char* kKey = "deepstack_visual_indexes";
  const bool is_qwen3_vl = whole.text_or("model_type", "").starts_with("qwen3_vl");
  std::vector<int> layers = vision.integers(kKey);
  if (!is_qwen3_vl) {
    if (!layers.empty()) vision.fail(kKey, "is not empty; only Qwen3-VL has deepstack");
    return {};
  }
  if (!vision.has(kKey)) layers = {8, 16, 24};
  if (layers.size() > text.layers.size())
    vision.fail(kKey, fmt::format("has more entries than the {} layers of the language model",
                                  text.layers.size()));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] >= tower_layers)
      vision.fail(kKey, fmt::format("has layer {} of {}", layers[i], tower_layers));
    if (i > 0 && layers[i] <= layers[i - 1]) vision.fail(kKey, "is not in ascending order");
  }
  return layers;
}

// The sections of the language model's rope do not concern the tower.
void read_qwen(const Config& whole, const Config& vision, const DecoderPlan& text,
               VisionPlan& plan) {
  VisionShape& shape = plan.shape;
  read_sizes(vision, "depth", "num_heads", {27, 1152, 16, 4304}, shape);
  divide_into_heads(vision, "num_heads", shape);
  require_three_channels(vision, "in_channels");
  shape.activation = read_activation(vision, "hidden_act", "gelu_pytorch_tanh");
  shape.rope_theta = rope_theta_of(vision, 1e4);
  shape.positions = vision.integer_or("num_position_embeddings", 2304, 1, kMostPositions);
  const int side = static_cast<int>(std::lround(std::sqrt(shape.positions)));
  if (side * side != shape.positions)
    vision.fail("num_position_embeddings", fmt::format("is {}, not a square", shape.positions));
  shape.deepstack = read_deepstack(whole, vision, text, shape.layers);
  const int out = vision.integer_or("out_hidden_size", text.hidden, 1, kMostHidden);
  if (out != text.hidden)
    vision.fail("out_hidden_size", fmt::format("is {}; the hidden size of the language model is {}",
                                               out, text.hidden));
  plan.image_token = token_of(whole, text, "image_token_id", nullptr);
  plan.begin_token = token_of(whole, text, "vision_start_token_id", nullptr);
  plan.end_token = token_of(whole, text, "vision_end_token_id", nullptr);
}

void read_gemma4(const Config& whole, const Config& vision, const DecoderPlan& text,
                 VisionPlan& plan) {
  VisionShape& shape = plan.shape;
  read_sizes(vision, "num_hidden_layers", "num_attention_heads", {16, 768, 12, 3072}, shape);
  shape.kv_heads = vision.integer_or("num_key_value_heads", shape.heads, 1, kMostHeads);
  if (shape.heads % shape.kv_heads != 0)
    vision.fail("num_key_value_heads", "does not divide num_attention_heads");
  shape.head_dim = vision.integer_or("head_dim", 64, 1, kMostHeadDim);
  check_head_dim(vision, "head_dim", shape);
  shape.activation = read_activation(vision, "hidden_activation", "gelu_pytorch_tanh");
  shape.gated = true;
  shape.norm_eps = static_cast<float>(vision.positive_or("rms_norm_eps", 1e-6));
  shape.projector_eps = shape.norm_eps;
  shape.rope_theta = rope_theta_of(vision, 100);
  shape.positions = vision.integer_or("position_embedding_size", 10240, 1, kMostPositions);
  if (shape.positions < plan.processor.max_tokens * plan.processor.merge)
    vision.fail("position_embedding_size",
                fmt::format("is {}, too few for an image of one row of {} tokens", shape.positions,
                            plan.processor.max_tokens));
  if (vision.boolean_or("attention_bias", false))
    vision.fail("attention_bias", "is true; only false is supported");
  shape.clipped = vision.boolean_or("use_clipped_linears", false);
  shape.standardised = vision.boolean_or("standardize", false);
  plan.image_token = token_of(whole, text, "image_token_id", "image_token_index");
  plan.begin_token = token_of(whole, text, "boi_token_id", "boi_token_index");
  plan.end_token = token_of(whole, text, "eoi_token_id", "eoi_token_index");
  const auto text_config = whole.object("text_config");
  plan.sees_block =
      text_config && text_config->text_or("use_bidirectional_attention", "") == "vision";
}

void read_gemma3(const Config& whole, const Config& vision, const DecoderPlan& text,
                 VisionPlan& plan) {
  VisionShape& shape = plan.shape;
  read_sizes(vision, "num_hidden_layers", "num_attention_heads", {27, 1152, 16, 4304}, shape);
  divide_into_heads(vision, "num_attention_heads", shape);
  require_three_channels(vision, "num_channels");
  shape.activation = read_activation(vision, "hidden_act", "gelu_pytorch_tanh");
  shape.norm_eps = static_cast<float>(vision.positive_or("layer_norm_eps", 1e-6));
  shape.projector_eps = shape.norm_eps;
  const int side = plan.processor.max_width / plan.processor.patch;
  shape.positions = side * side;
  plan.image_token = token_of(whole, text, "image_token_index", "image_token_id");
  plan.begin_token = token_of(whole, text, "boi_token_index", "boi_token_id");
  plan.end_token = token_of(whole, text, "eoi_token_index", "eoi_token_id");
  plan.sees_block = true;
}

void read_pixtral(const Config& whole, const Config& vision, const DecoderPlan& text,
                  VisionPlan& plan) {
  VisionShape& shape = plan.shape;
  read_sizes(vision, "num_hidden_layers", "num_attention_heads", {24, 1024, 16, 4096}, shape);
  divide_into_heads(vision, "num_attention_heads", shape);
  if (vision.integer_or("head_dim", shape.head_dim, 1, kMostHeadDim) != shape.head_dim)
    vision.fail("head_dim",
                fmt::format("is not hidden_size / num_attention_heads, {}", shape.head_dim));
  require_three_channels(vision, "num_channels");
  shape.activation = read_activation(vision, "hidden_act", "gelu");
  shape.gated = true;
  shape.norm_eps = 1e-5f;
  shape.rope_theta = rope_theta_of(vision, 1e4);
  shape.projector_bias = whole.boolean_or("multimodal_projector_bias", false);
  if (const auto text_config = whole.object("text_config"))
    shape.projector_eps = static_cast<float>(text_config->positive_or("rms_norm_eps", 1e-6));
  // transformers allows other layers, or several.
  const nlohmann::json* layer = whole.find("vision_feature_layer");
  if (layer != nullptr && *layer != -1)
    whole.fail("vision_feature_layer", "is not -1; only the last layer is supported");
  if (read_activation(whole, "projector_hidden_act", "gelu") != Activation::kGelu)
    whole.fail("projector_hidden_act", "is not gelu");
  plan.image_token = token_of(whole, text, "image_token_index", "image_token_id");
}

}  // namespace

void read_vision_settings(const Config& whole, const DecoderPlan& text, VisionPlan& plan) {
  const auto vision = whole.object("vision_config");
  if (!vision) whole.fail("vision_config", "is missing");
  plan.text_hidden = text.hidden;
  switch (plan.processor.family) {
    case ImageFamily::kQwen:
      return read_qwen(whole, *vision, text, plan);
    case ImageFamily::kGemma4:
      return read_gemma4(whole, *vision, text, plan);
    case ImageFamily::kGemma3:
      return read_gemma3(whole, *vision, text, plan);
    case ImageFamily::kPixtral:
      return read_pixtral(whole, *vision, text, plan);
  }
}

}  // namespace octavo

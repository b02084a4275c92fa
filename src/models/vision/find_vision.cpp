#include "models/vision/find_vision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "models/config.h"
#include "models/format/printable.h"
#include "models/vision/vision_settings.h"
#include "models/vision/vision_tower.h"
#include "models/weight_source.h"
#include "vision/image_processor.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr const char* kProcessorFlag = "--mm-processor-kwargs";

// Names in checkpoints of transformers, the published ones and mlx-vlm's.
struct TowerNames {
  std::vector<const char*> towers;
  const char* first;  // the first matrix of the tower
  std::vector<const char*> projectors;
  const char* projection;  // a matrix of the projector
};

TowerNames tower_names(ImageFamily family) {
  switch (family) {
    case ImageFamily::kQwen:
      return {{"model.visual.", "vision_tower.", "visual.", "model.language_model.visual."},
              "patch_embed.proj.weight",
              {},
              ""};
    case ImageFamily::kGemma4:
      return {{"model.vision_tower.", "vision_tower."},
              "patch_embedder.input_proj.weight",
              {"model.embed_vision.", "embed_vision."},
              "embedding_projection.weight"};
    case ImageFamily::kGemma3:
      return {{"vision_tower.vision_model.", "model.vision_tower.vision_model.",
               "model.vision_tower.", "vision_tower."},
              "embeddings.patch_embedding.weight",
              {"multi_modal_projector.", "model.multi_modal_projector."},
              "mm_input_projection_weight"};
    case ImageFamily::kPixtral:
      return {{"vision_tower.", "model.vision_tower.", "vision_tower.vision_model."},
              "patch_conv.weight",
              {"multi_modal_projector.", "model.multi_modal_projector."},
              "linear_1.weight"};
  }
  return {};
}

// The first of the prefixes with which the checkpoint has the tensor; null if there is none.
const char* prefix_of(const Checkpoint& checkpoint, const std::vector<const char*>& prefixes,
                      const char* tensor) {
  const auto found = std::ranges::find_if(prefixes, [&](const char* prefix) {
    return checkpoint.find(std::string(prefix) + tensor) != nullptr;
  });
  return found != prefixes.end() ? *found : nullptr;
}

// Fills the names. Returns why there is no tower, or nothing.
std::string find_names(const Checkpoint& checkpoint, VisionPlan& plan) {
  const TowerNames names = tower_names(plan.processor.family);
  const char* tower = prefix_of(checkpoint, names.towers, names.first);
  if (tower == nullptr) {
    return fmt::format("the checkpoint has no vision tower: no tensor is named {}{}",
                       names.towers.front(), names.first);
  }
  plan.shape.tower = tower;
  const std::vector<int64_t>& first = checkpoint.find(plan.shape.tower + names.first)->shape;
  constexpr int64_t kChannels = 3;
  plan.shape.channels_last =
      first.size() >= 4 && first.back() == kChannels && first[1] != kChannels;
  if (names.projectors.empty()) return "";
  const char* projector = prefix_of(checkpoint, names.projectors, names.projection);
  if (projector == nullptr) {
    return fmt::format("the checkpoint has no projector of images: no tensor is named {}{}",
                       names.projectors.front(), names.projection);
  }
  plan.shape.projector = projector;
  return "";
}

Json read_if_present(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? read_json(path) : Json(nullptr);
}

Json processor_settings(const std::filesystem::path& folder) {
  Json settings = read_if_present(folder / "preprocessor_config.json");
  return settings.is_null() ? read_if_present(folder / "processor_config.json") : settings;
}

// `settings` with the flag's values. A misspelt key would have no effect, so keys are checked.
Json with_kwargs(Json settings, std::string_view kwargs) {
  constexpr std::array kKeys = {"min_pixels",
                                "max_pixels",
                                "size",
                                "max_soft_tokens",
                                "patch_size",
                                "merge_size",
                                "temporal_patch_size",
                                "pooling_kernel_size",
                                "spatial_merge_size",
                                "do_resize",
                                "do_rescale",
                                "do_normalize",
                                "do_pan_and_scan",
                                "rescale_factor",
                                "image_mean",
                                "image_std",
                                "resample"};
  const Json given = Json::parse(kwargs, nullptr, false);
  if (!given.is_object()) throw SetupError(fmt::format("{}: not a JSON object", kProcessorFlag));
  for (const auto& [key, value] : given.items()) {
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      throw SetupError(fmt::format("{}: \"{}\" is not known; the keys are {}", kProcessorFlag,
                                   printable(key), fmt::join(kKeys, ", ")));
    }
  }
  if (!settings.is_object()) settings = Json::object();
  Json& changed = settings.contains("image_processor") ? settings["image_processor"] : settings;
  changed.merge_patch(given);
  return settings;
}

ImageProcessor read_processor(const Json& config, const Json& settings, std::string_view kwargs) {
  ImageProcessor processor = read_image_processor(config, settings);
  if (kwargs.empty()) return processor;
  const ImageProcessor own = processor;
  const Json changed = with_kwargs(settings, kwargs);
  try {
    processor = read_image_processor(config, changed);
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}: {}", kProcessorFlag, error.what()));
  }
  if (processor.patch != own.patch || processor.merge != own.merge ||
      processor.frames != own.frames) {
    throw SetupError(fmt::format("{}: the model's patches cannot be changed", kProcessorFlag));
  }
  return processor;
}

// tokenizer.json without the vocabulary, which is large; null if the file does not exist.
Json tokenizer_settings(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  const auto keeps = [](int depth, Json::parse_event_t event, const Json& key) {
    return !(depth == 1 && event == Json::parse_event_t::key && key == "model");
  };
  Json settings = Json::parse(read_text_file(path), keeps, false);
  return settings.is_object() ? settings : Json(nullptr);
}

// The id of a special token by its text, from the tokenizer's files.
int special_token(const std::filesystem::path& folder, std::string_view text, int vocab) {
  const Json config = read_if_present(folder / "tokenizer_config.json");
  if (const auto tokens = config.find("added_tokens_decoder");
      config.is_object() && tokens != config.end() && tokens->is_object()) {
    for (const auto& [key, token] : tokens->items()) {
      int id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool is_number = error == std::errc{} && end == key.data() + key.size();
      if (is_number && id >= 0 && id < vocab && token.is_object() &&
          token.value("content", Json()) == text)
        return id;
    }
  }
  // transformers 5 does not write added_tokens_decoder.
  const Json tokenizer = tokenizer_settings(folder / "tokenizer.json");
  if (const auto tokens = tokenizer.find("added_tokens");
      tokens != tokenizer.end() && tokens->is_array()) {
    for (const Json& token : *tokens) {
      if (!(token.is_object() && token.value("content", Json()) == text)) continue;
      const Json id = token.value("id", Json());
      const int64_t number = id.is_number_integer() ? id.get<int64_t>() : -1;
      if (number >= 0 && number < vocab) return static_cast<int>(number);
    }
  }
  throw SetupError(
      fmt::format("neither tokenizer_config.json nor tokenizer.json has the token {}", text));
}

// Only config.json has no ids for these.
void read_line_tokens(const Checkpoint& checkpoint, const DecoderPlan& text, VisionPlan& plan) {
  if (plan.processor.family != ImageFamily::kPixtral) return;
  plan.break_token = special_token(checkpoint.folder(), "[IMG_BREAK]", text.vocab);
  plan.end_token = special_token(checkpoint.folder(), "[IMG_END]", text.vocab);
}

uint64_t elements_of(const TensorView& tensor) {
  uint64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
  return elements;
}

// Requests every tensor that loading would. Returns why it could not be loaded, or nothing.
std::string check_tower(const Checkpoint& checkpoint, VisionPlan& plan) {
  WeightSource source(checkpoint, nullptr, WeightUse::kCheck);
  load_vision_tower(plan, DType::kFloat32, source);
  if (!source.problems().empty()) return source.problems().front();
  plan.weights_bytes = source.loaded_bytes();
  for (const auto& [name, is_matrix] : source.tensors_in_use())
    plan.parameters += elements_of(*checkpoint.find(name));
  return "";
}

FoundVision without_tower(std::string why) {
  return {.plan = std::nullopt, .absent = std::move(why)};
}

FoundVision find_tower(const Checkpoint& checkpoint, const DecoderPlan& text, const Json& config,
                       const ImageProcessor& processor) {
  VisionPlan plan{.processor = processor};
  if (std::string why = find_names(checkpoint, plan); !why.empty())
    return without_tower(std::move(why));
  read_vision_settings(Config(config, "config.json"), text, plan);
  read_line_tokens(checkpoint, text, plan);
  if (std::string why = check_tower(checkpoint, plan); !why.empty())
    return without_tower(std::move(why));
  return {.plan = std::move(plan)};
}

}  // namespace

FoundVision find_vision(const Checkpoint& checkpoint, const DecoderPlan& text,
                        std::string_view processor_kwargs) {
  if (checkpoint.gguf() != nullptr)
    return without_tower("GGUF files with a separate mmproj file are not supported yet");
  Json config = read_json(checkpoint.folder() / "config.json");
  const auto vision = config.find("vision_config");
  if (vision == config.end() || !vision->is_object())
    return without_tower("the model takes text only");
  Json settings;
  try {
    settings = processor_settings(checkpoint.folder());
    read_image_processor(config, settings);
  } catch (const SetupError& error) {
    return without_tower(error.what());
  }
  const ImageProcessor processor = read_processor(config, settings, processor_kwargs);
  try {
    return find_tower(checkpoint, text, config, processor);
  } catch (const SetupError& error) {
    return without_tower(error.what());
  }
}

}  // namespace octavo

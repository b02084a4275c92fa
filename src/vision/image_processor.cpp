#include "vision/image_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "vision/processor_fields.h"

namespace octavo {
namespace {

using Channels = std::array<double, 3>;

constexpr int kMostPatch = 64;
constexpr int kMostMerge = 16;
constexpr int kMostSide = 16'384;
constexpr int64_t kMostPixels = int64_t{1} << 28;
constexpr double kRescale = 1.0 / 255;
// Pillow's numbers of the filters.
constexpr int kPillowBilinear = 2;
constexpr int kPillowBicubic = 3;

struct Files {
  ProcessorFields config;
  ProcessorFields preprocessor;
};

ImageFamily family_of(const ProcessorFields& config) {
  const std::string type = config.text("model_type").value_or("");
  if (type == "qwen3_5" || type == "qwen3_5_moe" || type == "qwen3_vl" || type == "qwen3_vl_moe") {
    return ImageFamily::kQwen;
  }
  if (type == "gemma4") return ImageFamily::kGemma4;
  if (type == "gemma3") return ImageFamily::kGemma3;
  if (type == "mistral3") return ImageFamily::kPixtral;
  config.refuse("model_type",
                "images are supported for qwen3_5, qwen3_5_moe, qwen3_vl, "
                "qwen3_vl_moe, gemma4, gemma3 and mistral3");
}

// A number that both files may have. They must agree: the first sets the tower's weights, the
// second the patches.
int agreed(const Files& files, std::string_view config_key, std::string_view preprocessor_key,
           int most, int otherwise) {
  const std::optional<int64_t> tower = files.config.integer(config_key, 1, most);
  const std::optional<int64_t> patches = files.preprocessor.integer(preprocessor_key, 1, most);
  if (tower && patches && *tower != *patches) {
    files.preprocessor.refuse(preprocessor_key,
                              fmt::format("config.json: {} is {}", config_key, *tower));
  }
  return static_cast<int>(tower ? *tower : patches.value_or(otherwise));
}

void read_qwen(const Files& files, ImageProcessor& processor) {
  processor.patch = agreed(files, "vision_config.patch_size", "patch_size", kMostPatch, 16);
  processor.merge = agreed(files, "vision_config.spatial_merge_size", "merge_size", kMostMerge, 2);
  processor.frames =
      agreed(files, "vision_config.temporal_patch_size", "temporal_patch_size", 4, 2);
  const ProcessorFields& fields = files.preprocessor;
  const auto pixels = [&](std::string_view key, std::string_view inside_size, int64_t otherwise) {
    const auto value = fields.integer(key, 1, kMostPixels);
    return value ? *value : fields.integer(inside_size, 1, kMostPixels).value_or(otherwise);
  };
  processor.min_pixels = pixels("min_pixels", "size.shortest_edge", 65'536);
  processor.max_pixels = pixels("max_pixels", "size.longest_edge", 16'777'216);
  if (processor.min_pixels > processor.max_pixels) {
    const bool is_top = fields.integer("min_pixels", 1, kMostPixels).has_value();
    fields.refuse(is_top ? "min_pixels" : "size.shortest_edge",
                  fmt::format("it must be at most the largest size, {}", processor.max_pixels));
  }
}

void read_gemma4(const Files& files, ImageProcessor& processor) {
  processor.patch = agreed(files, "vision_config.patch_size", "patch_size", kMostPatch, 16);
  processor.merge =
      agreed(files, "vision_config.pooling_kernel_size", "pooling_kernel_size", kMostMerge, 3);
  const bool in_preprocessor = files.preprocessor.integer("max_soft_tokens", 1, 1120).has_value();
  const ProcessorFields& fields = in_preprocessor ? files.preprocessor : files.config;
  const std::string_view key = in_preprocessor ? "max_soft_tokens" : "vision_soft_tokens_per_image";
  processor.max_tokens = static_cast<int>(fields.integer(key, 1, 1120).value_or(280));
  constexpr std::array kBudgets = {70, 140, 280, 560, 1120};
  if (std::ranges::find(kBudgets, processor.max_tokens) == kBudgets.end()) {
    fields.refuse(key, "it must be 70, 140, 280, 560 or 1120");
  }
}

void read_gemma3(const Files& files, ImageProcessor& processor) {
  processor.patch = agreed(files, "vision_config.patch_size", "patch_size", kMostPatch, 14);
  const int side = agreed(files, "vision_config.image_size", "size.height", kMostSide, 896);
  if (agreed(files, "vision_config.image_size", "size.width", kMostSide, 896) != side) {
    files.preprocessor.refuse("size.width", "it must be equal to size.height");
  }
  processor.max_width = processor.max_height = side;
  const auto tokens = files.config.integer("mm_tokens_per_image", 1, 65'536).value_or(256);
  const int token_rows = static_cast<int>(std::lround(std::sqrt(static_cast<double>(tokens))));
  const int rows = side / processor.patch;
  if (side % processor.patch != 0) {
    files.config.refuse("vision_config.image_size",
                        fmt::format("it must be a multiple of patch_size, {}", processor.patch));
  }
  if (int64_t{token_rows} * token_rows != tokens || rows % token_rows != 0) {
    files.config.refuse("mm_tokens_per_image",
                        fmt::format("it must divide {} x {} patches into squares", rows, rows));
  }
  processor.merge = rows / token_rows;
}

void read_pixtral(const Files& files, ImageProcessor& processor) {
  const bool has_sides = files.preprocessor.is_object("patch_size");
  processor.patch = agreed(files, "vision_config.patch_size",
                           has_sides ? "patch_size.height" : "patch_size", kMostPatch, 14);
  if (has_sides) {
    agreed(files, "vision_config.patch_size", "patch_size.width", kMostPatch, processor.patch);
  }
  processor.merge = agreed(files, "spatial_merge_size", "spatial_merge_size", kMostMerge, 2);
  const int tower_side = static_cast<int>(
      files.config.integer("vision_config.image_size", 1, kMostSide).value_or(1540));
  const ProcessorFields& fields = files.preprocessor;
  if (const auto edge = fields.integer("size.longest_edge", 1, kMostSide)) {
    processor.max_width = processor.max_height = static_cast<int>(*edge);
  } else {
    const auto side = [&](std::string_view key) {
      return static_cast<int>(fields.integer(key, 1, kMostSide).value_or(tower_side));
    };
    processor.max_width = side("size.width");
    processor.max_height = side("size.height");
  }
}

ResizeFilter read_filter(const ProcessorFields& fields, ResizeFilter otherwise) {
  const std::optional<int64_t> number = fields.integer("resample", 0, 100);
  if (!number) return otherwise;
  if (*number == kPillowBilinear) return ResizeFilter::kBilinear;
  if (*number == kPillowBicubic) return ResizeFilter::kBicubic;
  fields.refuse("resample", "only 2 (bilinear) and 3 (bicubic) are supported");
}

void require_on(const ProcessorFields& fields, std::string_view key) {
  if (!fields.flag(key).value_or(true)) fields.refuse(key, "only true is supported");
}

// The arithmetic of the family's processor in float32, so that the bits are the same: mlx-vlm's,
// and for Gemma 3 transformers', which rescales in float64.
void fill_levels(const ProcessorFields& fields, ImageProcessor& processor) {
  const double rescale = fields.number("rescale_factor", 1e-6, 1).value_or(kRescale);
  const bool is_pixtral = processor.family == ImageFamily::kPixtral;
  const bool is_gemma4 = processor.family == ImageFamily::kGemma4;
  constexpr Channels kHalf = {0.5, 0.5, 0.5};
  constexpr Channels kClipMean = {0.48145466, 0.4578275, 0.40821073};
  constexpr Channels kClipStd = {0.26862954, 0.26130258, 0.27577711};
  Channels mean =
      fields.per_channel("image_mean", -10, 10).value_or(is_pixtral ? kClipMean : kHalf);
  Channels deviation =
      fields.per_channel("image_std", 1e-6, 1e6).value_or(is_pixtral ? kClipStd : kHalf);
  if (!fields.flag("do_normalize").value_or(!is_gemma4)) {
    mean = {0, 0, 0};
    deviation = {1, 1, 1};
  }
  for (size_t channel = 0; channel < mean.size(); ++channel) {
    for (int byte = 0; byte < 256; ++byte) {
      float value = processor.family == ImageFamily::kGemma3
                        ? static_cast<float>(byte * rescale)
                        : static_cast<float>(byte) * static_cast<float>(rescale);
      value = (value - static_cast<float>(mean[channel])) / static_cast<float>(deviation[channel]);
      if (is_gemma4) value = 2 * (value - 0.5f);  // elsewhere the first operation of the model
      processor.levels[channel][byte] = value;
    }
  }
}

}  // namespace

ImageProcessor read_image_processor(const nlohmann::json& config,
                                    const nlohmann::json& preprocessor_config) {
  const bool has_processor =
      preprocessor_config.is_object() && preprocessor_config.contains("image_processor");
  const Files files{
      .config = {config, "config.json"},
      .preprocessor = has_processor
                          ? ProcessorFields(preprocessor_config["image_processor"],
                                            "processor_config.json: image_processor")
                          : ProcessorFields(preprocessor_config, "preprocessor_config.json")};
  const ProcessorFields& fields = files.preprocessor;
  ImageProcessor processor{.family = family_of(files.config)};
  switch (processor.family) {
    case ImageFamily::kQwen:
      read_qwen(files, processor);
      break;
    case ImageFamily::kGemma4:
      read_gemma4(files, processor);
      break;
    case ImageFamily::kGemma3:
      read_gemma3(files, processor);
      break;
    case ImageFamily::kPixtral:
      read_pixtral(files, processor);
      break;
  }
  require_on(fields, "do_resize");
  require_on(fields, "do_rescale");
  if (fields.flag("do_pan_and_scan").value_or(false)) {
    fields.refuse("do_pan_and_scan", "only false is supported");
  }
  processor.filter =
      read_filter(fields, processor.family == ImageFamily::kGemma3 ? ResizeFilter::kBilinear
                                                                   : ResizeFilter::kBicubic);
  fill_levels(fields, processor);
  return processor;
}

}  // namespace octavo

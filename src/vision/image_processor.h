// image_processor.h - how a model family turns pixels into patches. Any thread. No MLX.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "vision/resize.h"

namespace octavo {

enum class ImageFamily {
  kQwen,     // qwen3_5, qwen3_5_moe, qwen3_vl, qwen3_vl_moe
  kGemma4,   // gemma4
  kGemma3,   // gemma3
  kPixtral,  // mistral3
};

// The settings of a family's image processor. Plain data; read_image_processor() makes valid ones.
struct ImageProcessor {
  ImageFamily family = ImageFamily::kQwen;
  ResizeFilter filter = ResizeFilter::kBicubic;
  int patch = 16;          // pixels per side of a patch
  int merge = 2;           // patches per side of an image token
  int frames = 1;          // copies of a patch in its row (Qwen: 2)
  int64_t min_pixels = 0;  // Qwen: of the resized image
  int64_t max_pixels = 0;  // Qwen: likewise
  int max_tokens = 0;      // Gemma 4: 70, 140, 280, 560 or 1120
  int max_width = 0;       // Pixtral: of the resized image; Gemma 3: its width
  int max_height = 0;      // likewise
  // [channel][byte]: the number that a byte becomes, rescaled and normalised as the family does it.
  std::array<std::array<float, 256>, 3> levels{};

  int token_side() const { return patch * merge; }  // pixels per side of an image token
  int patch_numbers() const { return 3 * frames * patch * patch; }
};

// `config` is a model's config.json; `preprocessor_config` is its preprocessor_config.json, or a
// processor_config.json with the key image_processor, or null for the family's defaults. Throws
// SetupError, which names the key, for values that cannot be served.
ImageProcessor read_image_processor(const nlohmann::json& config,
                                    const nlohmann::json& preprocessor_config);

}  // namespace octavo

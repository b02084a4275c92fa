// image_settings.h - how a model takes the images of requests. No MLX.
#pragma once

#include "vision/image.h"
#include "vision/image_processor.h"

namespace octavo::api {

inline constexpr int kMaxImages = 64;         // of a request, by default
inline constexpr int kMostImages = 1024;      // that --limit-mm-per-prompt may allow
inline constexpr int kLowDetailTokens = 256;  // of an image with "detail": "low"

// Plain data.
struct ImageSettings {
  ImageProcessor processor = {};
  // As in VisionPlan: `image_token` stands for one row of an image; begin and end enclose all of
  // them; `break_token` follows each of its lines but the last. -1: the family has none.
  int image_token = -1;
  int begin_token = -1;
  int end_token = -1;
  int break_token = -1;
  int max_tokens = 4096;        // of one image
  int max_images = kMaxImages;  // of a request; 0: none
  ImageLimits limits = {};      // of a file, before it is resized
};

}  // namespace octavo::api

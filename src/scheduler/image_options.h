// image_options.h - how images of requests are scheduled. No MLX.
#pragma once

#include <functional>

#include "scheduler/prompt_image.h"

namespace octavo {

struct ImageOptions {
  bool enabled = false;      // requests may have images
  bool three_axes = false;   // the rotation of an image's rows has a time, a height and a width
  bool sees_block = false;   // an image's rows see one another, so they run in one step
  int max_image_tokens = 0;  // rows of one image
  int kept_tokens = 0;       // rows of encoded images that are kept at once; at least one image's
  // Into how many pieces the encoding of an image is divided; at least 1.
  std::function<int(const PromptImage&)> pieces = nullptr;
};

}  // namespace octavo

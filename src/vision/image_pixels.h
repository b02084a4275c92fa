// image_pixels.h - an image of a request as its model sees it. Any thread. No MLX.
#pragma once

#include <cstddef>

#include "vision/image.h"

namespace octavo {

// Kept until the request ends: after a preemption, an image whose rows are no longer kept is encoded
// again.
struct ImagePixels {
  Image resized;   // of the size that fit_image() chose
  int grid_h = 0;  // in patches
  int grid_w = 0;

  size_t bytes() const { return sizeof(ImagePixels) + resized.rgb.capacity(); }
};

}  // namespace octavo

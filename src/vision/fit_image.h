// fit_image.h - the size at which a model sees an image. Any thread. No MLX.
#pragma once

#include "vision/image_processor.h"

namespace octavo {

struct ImageSize {
  int width = 0;  // of the resized image
  int height = 0;
  int grid_w = 0;  // in patches
  int grid_h = 0;
  // Embeddings of the image, in rows of grid_w / merge. Pixtral's prompt also has a token after
  // each row of them.
  int tokens = 0;
};

// The size that the family's processor chooses for an image of width x height, or a smaller one of
// about the same shape if it has more than `max_tokens` tokens. Throws ImageError if the image's
// shape is not supported or `max_tokens` are too few.
ImageSize fit_image(const ImageProcessor& processor, int width, int height, int max_tokens);

}  // namespace octavo

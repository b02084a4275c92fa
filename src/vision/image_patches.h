// image_patches.h - the numbers that a vision tower reads. Any thread. No MLX.
#pragma once

#include <vector>

#include "vision/image.h"
#include "vision/image_processor.h"

namespace octavo {

struct ImagePatches {
  int grid_h = 0;  // in patches
  int grid_w = 0;
  int tokens = 0;
  // [grid_h * grid_w, patch_numbers()]: rows for the tower's first matrix, in the order of the
  // family's processor.
  //   Qwen: patches in blocks of merge x merge; numbers [channel, frame, y, x]
  //   Gemma 4: patches row by row; numbers [y, x, channel]
  //   Gemma 3, Pixtral: patches row by row; numbers [channel, y, x]
  std::vector<float> values;
};

// `resized` has the size that fit_image() returned.
ImagePatches make_patches(const ImageProcessor& processor, const Image& resized);

}  // namespace octavo

// resize.h - changes the size of an image with the bits of Pillow 13. Any thread. No MLX.
#pragma once

#include "vision/image.h"

namespace octavo {

enum class ResizeFilter { kBilinear, kBicubic };

// Antialiased, as Image.resize of Pillow 13: two passes with 22-bit integer weights. The result
// does not depend on the processor.
Image resize(const Image& image, int width, int height, ResizeFilter filter);

}  // namespace octavo

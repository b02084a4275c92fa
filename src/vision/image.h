// image.h - a decoded image, and the error of an image that cannot be used. Any thread. No MLX.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace octavo {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // row-major, 3 bytes per pixel
};

struct ImageLimits {
  uint64_t pixels = 64'000'000;
  int side = 16'384;
};

// The image of a request cannot be used; the text says why. Becomes a 400.
class ImageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace octavo

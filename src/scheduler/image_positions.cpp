#include "scheduler/image_positions.h"

#include <algorithm>

namespace octavo {

RopePosition rope_position(std::span<const PromptImage> images, int index) {
  int delta = 0;  // from an index to its position
  for (const PromptImage& image : images) {
    if (index < image.offset) break;
    const int begin = image.offset + delta;
    if (index < image.end()) {
      const int row = index - image.offset;
      return {begin, begin + row / image.grid_w, begin + row % image.grid_w};
    }
    delta += std::max(image.grid_h, image.grid_w) - image.length();
  }
  const int position = index + delta;
  return {position, position, position};
}

}  // namespace octavo

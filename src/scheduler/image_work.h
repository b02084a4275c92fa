// image_work.h - what a step does for images besides its rows. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace octavo {

struct ImagePixels;

// Names an image's rows in the engine, from the start of its encoding until they are dropped. Never
// 0 and never used again.
using ImageId = uint64_t;

// Rows [row, row + count) of a step take the rows [first, first + count) of an encoded image instead
// of their tokens' embeddings.
struct ImageRows {
  int32_t row = 0;
  ImageId image = 0;
  int32_t first = 0;
  int32_t count = 0;

  bool operator==(const ImageRows&) const = default;
};

// In this order: first images are dropped, then one piece of an encoding runs, then the step's rows.
struct ImageWork {
  std::vector<ImageId> drops = {};  // also ends an encoding that is not complete
  ImageId encodes = 0;              // 0: none
  // With the first piece of an image; null for the others.
  std::shared_ptr<const ImagePixels> pixels = nullptr;

  bool empty() const { return drops.empty() && encodes == 0; }
};

}  // namespace octavo

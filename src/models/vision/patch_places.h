// patch_places.h - where an image's patches are, in the order of the tower. No MLX.
#pragma once

#include <vector>

#include "models/vision/vision_plan.h"

namespace octavo {

// The tower has patches in blocks of merge x merge, row by row, as have the patches within a block. The
// blocks are in the order of the image's tokens.
struct PatchPlace {
  int row = 0;
  int column = 0;
};
std::vector<PatchPlace> patch_places(int grid_h, int grid_w, int merge);

// Entries of a table of positions, and the weights at which they are added: corners[i] of patch p is
// entry indices[i][p].
struct PositionEntries {
  std::vector<std::vector<int>> indices;
  std::vector<std::vector<float>> weights;  // empty: all are 1
};

// The learned positions of a tower that has them. Gemma 4's table of rows follows its table of columns.
PositionEntries position_entries(const VisionPlan& plan, const std::vector<PatchPlace>& places,
                                 int grid_h, int grid_w);

}  // namespace octavo

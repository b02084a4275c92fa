// vision_plan.h - the vision tower of a model as data. No MLX.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "models/vision/vision_shape.h"
#include "vision/image_processor.h"

namespace octavo {

struct VisionPlan {
  ImageProcessor processor = {};
  VisionShape shape = {};
  // Token ids of config.json. `image_token` stands for one row of an image; begin and end enclose all
  // of them, `break_token` follows each of its lines but the last. -1: the family has none.
  int image_token = -1;
  int begin_token = -1;
  int end_token = -1;
  int break_token = -1;
  // In some layers of the language model, an image's rows see one another, later ones included.
  bool sees_block = false;
  int text_hidden = 0;         // width of the rows
  uint64_t parameters = 0;     // of the tower and the projection
  uint64_t weights_bytes = 0;  // in memory, packed for the kernels

  std::string describe() const;  // for display: "Qwen, 27 layers of 1152, patches of 16"
  // Pieces of an image of grid_h x grid_w patches; see VisionPass.
  int pieces(int grid_h, int grid_w, int rows_at_once) const;
  // Memory of a pass besides the weights and its rows.
  uint64_t pass_bytes(int grid_h, int grid_w, int rows_at_once, DType dtype) const;
};

}  // namespace octavo

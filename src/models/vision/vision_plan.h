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
  int text_hidden = 0;         // of the language model
  uint64_t parameters = 0;     // of the tower and the projection
  uint64_t weights_bytes = 0;  // in memory, packed for the kernels

  // Parts of a row, side by side and as wide as the language model: the first stands for a token's
  // embedding, and the others are added to the hidden row after each of the first layers (deepstack).
  int row_parts() const { return 1 + shape.deepstack_parts(); }
  int row_width() const { return row_parts() * text_hidden; }

  std::string describe() const;  // for display: "Qwen, 27 layers of 1152, patches of 16"
  // Pieces of an image of grid_h x grid_w patches; see VisionPass.
  int pieces(int grid_h, int grid_w, int rows_at_once) const;
  // Memory of a pass besides the weights and its rows.
  uint64_t pass_bytes(int grid_h, int grid_w, int rows_at_once, DType dtype) const;
};

}  // namespace octavo

// vision_tower.h - encodes images: patches to rows of the language model. Engine thread only.
#pragma once

#include <memory>
#include <vector>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "models/vision/vision_plan.h"
#include "models/weight_source.h"
#include "vision/image_patches.h"

namespace octavo {

// One image on its way through the tower, in pieces that each take about as long as a step's rows in
// one layer: other requests run between them. The rows' bits do not depend on what runs in between.
class VisionPass {
 public:
  virtual ~VisionPass() = default;

  // Queues the next piece. Returns what to evaluate. Only VisionPlan::pieces() times.
  virtual std::vector<mx::array> queue_piece() = 0;
  // [tokens, VisionPlan::row_width()] in the model's dtype. After the last piece.
  virtual mx::array rows() const = 0;
};

class VisionTower {
 public:
  virtual ~VisionTower() = default;

  // `rows_at_once`: patches that a piece multiplies by matrices at once.
  virtual std::unique_ptr<VisionPass> begin(const ImagePatches& patches, int rows_at_once,
                                            KernelPath path) const = 0;
};

// Loads every weight of the tower and of the projection to the language model.
std::unique_ptr<VisionTower> load_vision_tower(const VisionPlan& plan, DType dtype,
                                               WeightSource& source);

}  // namespace octavo

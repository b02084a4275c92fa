// image_projection.h - patches after the last layer to rows of the language model. Engine thread only.
#pragma once

#include <memory>
#include <vector>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"
#include "models/vision/vision_plan.h"
#include "models/weight_source.h"

namespace octavo {

class ImageProjection {
 public:
  virtual ~ImageProjection() = default;

  // x: [T, hidden], blocks of merge x merge patches one after the other. Returns one row per block,
  // [T / (merge * merge), hidden of the language model].
  virtual mx::array forward(const mx::array& x, KernelPath path) const = 0;
};

std::unique_ptr<ImageProjection> load_image_projection(const VisionPlan& plan,
                                                       WeightSource& source);

// Of the layers in VisionShape::deepstack.
std::vector<std::unique_ptr<ImageProjection>> load_deepstack(const VisionPlan& plan,
                                                             WeightSource& source);

}  // namespace octavo

// patch_embedding.h - the first matrix of a vision tower, and its learned positions. Engine thread only.
#pragma once

#include <optional>

#include "kernels/linear.h"
#include "models/vision/patch_places.h"
#include "models/vision/vision_plan.h"
#include "models/weight_source.h"

namespace octavo {

class PatchEmbedding {
 public:
  PatchEmbedding(const VisionPlan& plan, WeightSource& source);

  // patches: [T, numbers] float32, of which the first is the image's patch `first`. `entries`: of all
  // patches. Returns [T, hidden] of `dtype`.
  mx::array forward(const mx::array& patches, const PositionEntries& entries, int first,
                    mx::Dtype dtype, KernelPath path) const;

 private:
  std::optional<mx::array> positions_of(const PositionEntries& entries, int first, int rows,
                                        mx::Dtype dtype) const;

  Projection linear_;
  std::optional<mx::array> positions_;  // [entries, hidden]
  std::optional<NormSpec> norm_;        // Pixtral
};

}  // namespace octavo

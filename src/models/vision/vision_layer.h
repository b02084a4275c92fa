// vision_layer.h - one transformer layer of a vision tower. Engine thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/qkv_write.h"
#include "models/vision/clamped_linear.h"
#include "models/vision/vision_plan.h"
#include "models/weight_source.h"

namespace octavo {

// How the heads of a tower are rotated: by the row and the column of a patch.
struct VisionRope {
  mx::array inverse_frequencies;  // [pairs] float32
  mx::array axes;                 // [pairs] int32: 0 for the row, 1 for the column
};
// Nothing if the tower does not rotate.
std::optional<VisionRope> make_vision_rope(const VisionPlan& plan);

// Rows of patches in the tower's type, and the pages of all patches' keys and values.
class VisionLayer {
 public:
  VisionLayer(const VisionPlan& plan, int layer, WeightSource& source);

  struct Written {
    mx::array q;  // [T, heads, head_dim]
    KvPages pages;
  };
  // Writes the rows' keys and values. `layout` has the rows' places among the patches.
  Written write(const mx::array& x, const KvPages& pages, const BatchLayout& layout,
                const mx::array& table, const std::optional<VisionRope>& rope) const;
  // The layer's output for the rows of `q`, after all rows were written. x: [T, hidden], its input.
  mx::array finish(const mx::array& x, const mx::array& q, const KvPages& pages,
                   const BatchLayout& layout, const mx::array& table) const;

 private:
  struct Weights {
    NormSpec attention_norm;
    std::optional<NormSpec> attention_out_norm;  // before the sum with the layer's input
    std::optional<mx::array> q_norm;             // [head_dim]
    std::optional<mx::array> k_norm;
    std::vector<ClampedLinear> qkv;  // q, k and v, or one for all
    ClampedLinear output;
    NormSpec mlp_norm;
    std::optional<NormSpec> mlp_out_norm;
    std::optional<ClampedLinear> gate;
    ClampedLinear up;
    ClampedLinear down;
  };
  static Weights load(const VisionPlan& plan, const std::string& at, WeightSource& source);

  mx::array project_qkv(const mx::array& x, KernelPath path) const;
  mx::array mlp(const mx::array& x, KernelPath path) const;

  VisionShape shape_;
  float attention_scale_;
  Weights weights_;
};

}  // namespace octavo

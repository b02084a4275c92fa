// batch_layout.h - which rows of a flat batch belong to which sequence.
#pragma once

#include <memory>
#include <optional>

#include "kernels/metal/attention_plans.h"
#include "kernels/metal/rotation_tables.h"
#include "kernels/rope_arrays.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// Rows of all sequences follow one another; prefill chunks and decode rows mix freely. A
// row's own K and V are written to the pages before any row reads them.
struct BatchLayout {
  mx::array positions;  // [T] int32: the row's place in its own sequence
  mx::array
      cu_seqlens_q;  // [S + 1] int32: rows of sequence s are [cu_seqlens_q[s], cu_seqlens_q[s + 1])
  mx::array
      context_lens;  // [S] int32: tokens of sequence s in the cache, this batch's rows included
  // The positions of the rotation where they differ from `positions`: [axes, T] int32. Options of the
  // kernels choose the axis of each pair of dimensions (M-RoPE, and the two axes of an image).
  std::optional<mx::array> rope_positions = {};
  // [T] int32: the last position that a row sees, where that is not its own: the end of a block in which
  // attention is bidirectional. At least the row's own position, and below its sequence's context. A
  // window still ends at the row's own position.
  std::optional<mx::array> last_visible = {};
  // On Metal, what the layers of one step share.
  std::shared_ptr<metal::AttentionPlans> plans = std::make_shared<metal::AttentionPlans>();
  std::shared_ptr<metal::RotationTables> rotations = std::make_shared<metal::RotationTables>();

  int tokens() const { return positions.shape(0); }
  int sequences() const { return context_lens.shape(0); }

  // axes: of each pair, for rope_positions; ignored without them.
  RopeArrays rope(const mx::array& inverse_frequencies,
                  const std::optional<mx::array>& axes) const {
    if (!rope_positions) return {positions, inverse_frequencies};
    return {*rope_positions, inverse_frequencies, axes};
  }
};

}  // namespace octavo

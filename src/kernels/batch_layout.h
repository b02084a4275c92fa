// batch_layout.h - which rows of a flat batch belong to which sequence.
#pragma once

#include <memory>

#include "kernels/metal/attention_plans.h"
#include "kernels/metal/rotation_tables.h"
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
  // On Metal, what the layers of one step share.
  std::shared_ptr<metal::AttentionPlans> plans = std::make_shared<metal::AttentionPlans>();
  std::shared_ptr<metal::RotationTables> rotations = std::make_shared<metal::RotationTables>();

  int tokens() const { return positions.shape(0); }
  int sequences() const { return context_lens.shape(0); }
};

}  // namespace octavo

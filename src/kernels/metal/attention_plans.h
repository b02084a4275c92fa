// attention_plans.h (metal) - the division of a step's attention into threadgroups, in device memory. The
// first layer of each shape computes it and the others use it again.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "kernels/metal/attention_grid.h"
#include "kernels/metal/encoder.h"

namespace octavo::metal {

struct AttentionPlan {
  // Items of one kernel and width share a launch.
  struct Wave {
    AttentionKernel kernel;
    int32_t width;
    uint32_t count;
    mx::array items;
  };
  std::vector<Wave> waves;
  uint32_t merge_count = 0;
  std::optional<mx::array> merges = {};
  int32_t partial_floats = 0;  // of one KV head
};

// The plans of one batch. One thread at a time.
class AttentionPlans {
 public:
  // Always called with the same sequences; layers may differ in last_visible. The arrays live until the
  // launches that follow have run.
  const AttentionPlan& find(const AttentionBatch& batch, Encoder& encoder);

 private:
  struct Entry {
    int32_t group, kv_heads, window, most_tiles, most_vector, v_dim;
    std::vector<int32_t> last_visible;
    AttentionPlan plan;
  };
  std::deque<Entry> entries_;  // references to them stay valid
};

}  // namespace octavo::metal

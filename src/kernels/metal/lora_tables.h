// lora_tables.h (metal) - the rows of a step by LoRA adapter, in device memory. The first layer
// writes them and the others use them again.
#pragma once

#include <optional>

#include "kernels/lora_plan.h"
#include "kernels/metal/encoder.h"

namespace octavo::metal {

// One thread at a time.
class LoraTables {
 public:
  struct Arrays {
    mx::array places;  // [rows] int32: the row's place in LoraPlan::order, or -1
    mx::array order;   // [rows with an adapter] int32
    mx::array tiles;   // as ExpertTiles::tiles, slots instead of experts
    int tile_count;
    int tile_rows;
  };

  // Always called with the same plan, which has adapters. The arrays stay allocated until the launches
  // that follow have run.
  const Arrays& find(const LoraPlan& plan, Encoder& encoder);

 private:
  std::optional<Arrays> arrays_;
};

}  // namespace octavo::metal

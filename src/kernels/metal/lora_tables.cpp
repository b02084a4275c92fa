#include "kernels/metal/lora_tables.h"

#include <algorithm>
#include <vector>

#include "kernels/metal/lora_params.h"

namespace octavo::metal {
namespace {

LoraTables::Arrays make_arrays(const LoraPlan& plan, Encoder& encoder) {
  constexpr int kFewRows = 8;  // tiles of linear.metal have 8 or 32 rows
  const bool is_small =
      std::ranges::all_of(plan.groups, [](const LoraGroup& g) { return g.count <= kFewRows; });
  const int tile_rows = is_small ? kFewRows : kLoraTileRows;
  std::vector<int32_t> tiles = {0};
  for (const LoraGroup& group : plan.groups) {
    for (int32_t done = 0; done < group.count; done += tile_rows) {
      ++tiles[0];
      tiles.insert(tiles.end(),
                   {group.slot, group.first + done, std::min(tile_rows, group.count - done)});
    }
  }
  std::vector<int32_t> places(plan.slots.size(), -1);
  for (size_t place = 0; place < plan.order.size(); ++place)
    places[static_cast<size_t>(plan.order[place])] = static_cast<int32_t>(place);
  return {.places = encoder.temporary(places, mx::int32),
          .order = encoder.temporary(plan.order, mx::int32),
          .tiles = encoder.temporary(tiles, mx::int32),
          .tile_count = tiles[0],
          .tile_rows = tile_rows};
}

}  // namespace

const LoraTables::Arrays& LoraTables::find(const LoraPlan& plan, Encoder& encoder) {
  if (!arrays_) {
    arrays_ = make_arrays(plan, encoder);
  } else {
    for (const mx::array* array : {&arrays_->places, &arrays_->order, &arrays_->tiles})
      encoder.keep(*array);
  }
  return *arrays_;
}

}  // namespace octavo::metal

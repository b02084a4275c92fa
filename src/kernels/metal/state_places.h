// state_places.h (metal) - the location of a layer's state blocks, as kernel parameters. No MLX.
#pragma once

#include "kernels/metal/state_params.h"
#include "kernels/types/state_geometry.h"

namespace octavo::metal {

inline StatePlaces head_places(const StateGeometry& g, int page_bytes, int table_columns) {
  return {.columns = g.columns,
          .table_columns = table_columns,
          .column = 0,
          .first = g.first_head,
          .per_page = g.heads_per_page,
          .block_bytes = static_cast<uint32_t>(g.head_bytes()),
          .page_bytes = static_cast<uint32_t>(page_bytes)};
}

inline StatePlaces unit_places(const StateGeometry& g, int page_bytes, int table_columns) {
  return {.columns = g.columns,
          .table_columns = table_columns,
          .column = g.conv_column,
          .first = g.first_unit,
          .per_page = g.units_per_page,
          .block_bytes = static_cast<uint32_t>(g.unit_bytes()),
          .page_bytes = static_cast<uint32_t>(page_bytes)};
}

}  // namespace octavo::metal

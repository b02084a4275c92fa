// state_blocks.h (reference) - reads and writes the blocks of state of one sequence with plain MLX
// operations.
#pragma once

#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"

namespace octavo::reference {

// What a block of state contains: heads or convolution units.
enum class StatePart : uint8_t { kRecurrent, kConvolution };

// Rows [begin, end) of the batch and the sequence's row of the table, read on the host.
struct StateRows {
  int begin, end;
  std::vector<int> table;

  // True if the table lists a destination for each row.
  bool keeps_each_row(const StateGeometry& geometry) const {
    const auto second = 2 * static_cast<size_t>(geometry.columns);
    return table.size() > second && table[second] >= 0;
  }
};
std::vector<StateRows> state_rows(const BatchLayout& layout, const mx::array& table);

// [heads, v_dim, k_dim] float32, or [units, conv_rows, unit_channels] of the conv_dtype; zeros
// if the table has no source.
mx::array read_state(const StatePages& pages, const StateRows& rows, StatePart part);

// Returns the pages with the sequence's state, of the same shape, written to its destination, or to
// that of its row `row`.
StatePages write_state(const StatePages& pages, const StateRows& rows, StatePart part,
                       const mx::array& state, int row = 0);

}  // namespace octavo::reference

// output_share.h - one rank's part of the outputs of matrices that are divided over several ranks. No
// MLX.
//
// All ranks compute as many outputs, so that they have the same shapes and the same memory. What goes
// past the last output repeats it, and is dropped when the parts are gathered.
#pragma once

#include <span>
#include <vector>

#include "kernels/weights/packed_weight.h"

namespace octavo {

struct OutputShare {
  int rank = 0;
  int ranks = 1;

  bool is_whole() const { return ranks == 1; }

  // How many of `full` outputs each rank computes, in whole units.
  int part(int full, int unit = kStripRows) const;
  // How many of them are this rank's, without repetitions.
  int real(int full, int unit = kStripRows) const { return real_of(rank, full, unit); }
  int real_of(int any_rank, int full, int unit = kStripRows) const;
  // Output i of this rank's part is output picks[i] of the whole; empty: all outputs.
  std::vector<int> picks(int full, int unit = kStripRows) const;

  bool operator==(const OutputShare&) const = default;
};

// Row i of the result is row order[picks[i]]; an empty list keeps all rows.
std::vector<int> picked_rows(std::span<const int> order, std::span<const int> picks);

// The rows of these heads of `size` rows each; `first`: the row of head 0. Empty for no heads, which
// stands for all of them.
std::vector<int> rows_of_heads(std::span<const int> heads, int size, int first = 0);

}  // namespace octavo

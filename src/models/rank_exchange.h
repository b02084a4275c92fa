// rank_exchange.h - how ranks that divide the outputs of matrices pass them to each other, as part of
// the graph. Engine thread only.
//
// Every rank must make the same calls in the same order. Each one runs after the one before.
#pragma once

#include <span>

#include "kernels/runtime/mlx.h"
#include "models/output_share.h"

namespace octavo {

class RankExchange {
 public:
  virtual ~RankExchange() = default;

  virtual OutputShare share() const = 0;
  // parts: [T, columns], this rank's part of each of `outputs`, one after the other, divided in units
  // of `unit`. Returns [T, sum of outputs], on every rank.
  virtual mx::array gather(const mx::array& parts, std::span<const int> outputs, int unit) = 0;
  // The same on rank 0. On the others it returns an array without meaning, which must be evaluated.
  virtual mx::array gather_at_first(const mx::array& parts, int outputs) = 0;
  // Rank 0's values [count] int32, which the others get; their `values` are ignored. `count`: the same
  // on all ranks.
  virtual mx::array from_first(const mx::array& values, int count) = 0;
};

// This rank's columns of `rows` [T, outputs], contiguous.
mx::array own_columns(const mx::array& rows, const OutputShare& share, int unit = kStripRows);

}  // namespace octavo

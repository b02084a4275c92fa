// projection.h - loads the linear layers of a model.
#pragma once

#include <string>
#include <utility>

#include "kernels/linear.h"
#include "models/weight_source.h"

namespace octavo {

// The projection of module `name`: [rows, cols], and [rows] of bias if `biased`. With a row order,
// row r of both is row row_order[r] of the file.
inline Projection load_projection(WeightSource& source, const std::string& name, int rows, int cols,
                                  bool biased, RowOrder row_order = {}) {
  Weight weight = source.matrix(name, rows, cols, row_order);
  std::optional<mx::array> bias;
  if (biased) bias = source.vector(name + ".bias", rows, row_order);
  return {std::move(weight), std::move(bias)};
}

// The same for q and k, whose rows may be in another order. `picks`: the rows to load, after they were
// ordered; empty: all.
inline Projection load_rope_projection(WeightSource& source, const std::string& name, int rows,
                                       int cols, const RopeRows& order, bool biased,
                                       RowOrder picks) {
  Weight weight = source.rope_matrix(name, rows, cols, order, picks);
  std::optional<mx::array> bias;
  if (biased) bias = source.rope_vector(name + ".bias", rows, order, picks);
  return {std::move(weight), std::move(bias)};
}

}  // namespace octavo

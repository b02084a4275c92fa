// slice_rows.h - some rows of an array, for the references.
#pragma once

#include "kernels/runtime/mlx.h"

namespace octavo::reference {

// [first, last) along axis 0.
inline mx::array slice_rows(const mx::array& array, int first, int last) {
  mx::Shape start(array.ndim(), 0);
  mx::Shape stop = array.shape();
  start[0] = first;
  stop[0] = last;
  return mx::slice(array, start, stop);
}

}  // namespace octavo::reference

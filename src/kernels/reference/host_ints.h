// host_ints.h - tables of a batch, read on the host: the reference goes one sequence after the
// other.
#pragma once

#include <vector>

#include "kernels/runtime/mlx.h"

namespace octavo::reference {

inline std::vector<int> host_ints(const mx::array& array) {
  mx::array copy = mx::contiguous(array);
  copy.eval();
  return {copy.data<int32_t>(), copy.data<int32_t>() + copy.size()};
}

inline mx::array host_array(const std::vector<int>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

}  // namespace octavo::reference

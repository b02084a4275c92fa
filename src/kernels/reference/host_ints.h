// host_ints.h - reads a batch's tables on the host: the reference processes one sequence at a time.
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

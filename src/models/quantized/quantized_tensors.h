// quantized_tensors.h - the tensors of one matrix in another quantisation than MLX's. No MLX.
#pragma once

#include <vector>

#include "models/format/tensor_view.h"

namespace octavo {

struct QuantizedTensors {
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;
  const TensorView* zeros = nullptr;        // may be null, as all below
  const TensorView* group_index = nullptr;  // the group of each input
  const TensorView* shape = nullptr;

  // Those that are not null.
  std::vector<const TensorView*> all() const {
    std::vector<const TensorView*> views;
    for (const auto* view : {codes, scales, zeros, group_index, shape})
      if (view != nullptr) views.push_back(view);
    return views;
  }
};

}  // namespace octavo

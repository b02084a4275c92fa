// rotation_tables.h (metal) - the cosines and sines of a step's rope angles, in device memory. The
// first layer with some frequencies computes them and the others use them again.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/rope_arrays.h"

namespace octavo::metal {

// The tables of one batch. One thread at a time.
class RotationTables {
 public:
  // [T, 2, pairs] float32: each row's cosines, then its sines, times `magnitude`, with the CPU's
  // bits. The host reads the arrays, so they must be available. Layers share a table if they pass the
  // same array of positions. The table stays allocated until the launches that follow have run.
  const mx::array& find(const RopeArrays& rope, float magnitude, Encoder& encoder);

 private:
  struct Entry {
    mx::array positions;  // kept, so that its address stays its own
    std::vector<float> frequencies;
    std::vector<int32_t> axes;  // empty: the first
    float magnitude;
    mx::array table;
  };
  std::deque<Entry> entries_;  // references to them stay valid
};

}  // namespace octavo::metal

// rotation_tables.h (metal) - the cosines and sines of a step's rope angles, in device memory. The
// first layer with some frequencies computes them and the others use them again.
#pragma once

#include <deque>
#include <vector>

#include "kernels/metal/encoder.h"

namespace octavo::metal {

// The tables of one batch. One thread at a time.
class RotationTables {
 public:
  // [T, 2, pairs] float32: each row's cosines, then its sines, times `magnitude`, with the CPU's
  // bits. Always called with the same positions; the host reads both arrays, so they must be
  // available. The table stays allocated until the launches that follow have run.
  const mx::array& find(const mx::array& positions, const mx::array& inverse_frequencies,
                        float magnitude, Encoder& encoder);

 private:
  struct Entry {
    std::vector<float> frequencies;
    float magnitude;
    mx::array table;
  };
  std::deque<Entry> entries_;  // references to them stay valid
};

}  // namespace octavo::metal

// mamba2.h (metal) - launches mamba2.metal.
#pragma once

#include "kernels/metal/encoder.h"
#include "kernels/types/state_geometry.h"

namespace octavo::metal {

// The arguments of the operation (kernels/mamba2.h).
struct Mamba2Call {
  StateGeometry geometry;
  mx::array pages;  // the buffer that is read and written
  mx::array cu_seqlens;
  mx::array table;
  mx::array xbc;
  mx::array gates;
  int z_column = 0;  // of gates, as is dt_column
  int dt_column = 0;
  mx::array a_log;
  mx::array dt_bias;
  mx::array d;
  int groups = 1;
  mx::array out;  // [T, heads * v_dim], allocated
};
void mamba2(const Mamba2Call& call, Encoder& encoder);

}  // namespace octavo::metal

// gated_delta.h (metal) - launches gated_delta.metal.
#pragma once

#include "kernels/metal/encoder.h"
#include "kernels/types/state_geometry.h"

namespace octavo::metal {

// The arguments of the operation (kernels/gated_delta.h).
struct GatedDeltaCall {
  StateGeometry geometry;
  mx::array pages;  // the buffer that is read and written
  mx::array cu_seqlens;
  mx::array table;
  mx::array qkv;
  mx::array gates;
  int z_column = 0;  // of gates, as are a_column and b_column
  int a_column = 0;
  int b_column = 0;
  mx::array a_log;
  mx::array dt_bias;
  mx::array norm;
  int key_heads = 0;
  float norm_eps = 0;
  mx::array out;  // [T, value heads * v_dim], allocated
};
void gated_delta(const GatedDeltaCall& call, Encoder& encoder);

}  // namespace octavo::metal

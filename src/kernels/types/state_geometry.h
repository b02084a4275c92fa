// state_geometry.h - the location of one layer's recurrent and convolution state in its buffer's
// pages. No MLX.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace octavo {

// A sequence's table lists `columns` pages to read its state from, then as many to write it to.
struct StateGeometry {
  int columns = 0;

  // Recurrent state: float32, v_dim x k_dim per head, in the kernels' own order. Head h of this
  // layer is block first_head + h; block b is in column b / heads_per_page, at byte
  // (b % heads_per_page) * head_bytes().
  int heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  int first_head = 0;
  int heads_per_page = 1;

  // Convolution: the last conv_rows input rows, cut into conv_units units of channels, each
  // [conv_rows][unit_channels]. Unit u of this layer is block first_unit + u; block b is in
  // column conv_column + b / units_per_page, at byte (b % units_per_page) * unit_bytes().
  int conv_rows = 0;
  int conv_units = 0;
  int unit_channels = 0;
  DType conv_dtype = DType::kFloat32;
  int conv_column = 0;
  int first_unit = 0;
  int units_per_page = 1;

  int channels() const { return conv_units * unit_channels; }
  size_t head_bytes() const {
    return static_cast<size_t>(k_dim) * static_cast<size_t>(v_dim) * sizeof(float);
  }
  size_t unit_bytes() const {
    return static_cast<size_t>(conv_rows) * static_cast<size_t>(unit_channels) *
           size_of(conv_dtype);
  }

  bool operator==(const StateGeometry&) const = default;
};

// Limits of the kernels; models beyond them are rejected at load.
inline constexpr int kStateDimStep = 16;      // divides k_dim, v_dim and unit_channels
inline constexpr int kLargestStateDim = 256;  // of k_dim and v_dim
inline constexpr int kLargestConvRows = 7;

}  // namespace octavo

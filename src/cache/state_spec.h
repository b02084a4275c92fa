// state_spec.h - the cache of a layer with recurrent state: a float32 state per head, and the last
// input rows of a causal convolution. No MLX.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "base/widen.h"

namespace octavo {

struct StateSpec {
  int heads = 0;  // 0: a convolution only
  int k_dim = 0;
  int v_dim = 0;
  int conv_rows = 0;  // 0: no convolution
  int conv_channels = 0;
  DType conv_dtype = DType::kFloat32;  // of the convolution's input rows

  bool operator==(const StateSpec&) const = default;

  size_t head_bytes() const { return widen(k_dim) * widen(v_dim) * sizeof(float); }
  // Channels stored together in a page: few enough to fill pages well.
  int unit_channels() const {
    for (int channels = 128; channels > 16; channels -= 16)
      if (conv_channels % channels == 0) return channels;
    return conv_channels % 16 == 0 ? 16 : conv_channels;
  }
  int conv_units() const { return conv_rows == 0 ? 0 : conv_channels / unit_channels(); }
  size_t unit_bytes() const {
    return widen(conv_rows) * widen(unit_channels()) * size_of(conv_dtype);
  }
  // Of one layer and sequence, without padding.
  size_t bytes() const { return widen(heads) * head_bytes() + widen(conv_units()) * unit_bytes(); }
};

}  // namespace octavo

// rope_arrays.h - the arrays that determine the angles of a rotation.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/token_rows.h"
#include "kernels/runtime/mlx.h"

namespace octavo {

// Row t turns pair i by positions[t] * inverse_frequencies[i]. Positions on several axes: by
// positions[axes[i], t], or those of the first axis if `axes` is unset.
struct RopeArrays {
  mx::array positions;                 // [T] int32, or [axes, T]
  mx::array inverse_frequencies;       // [pairs] float32
  std::optional<mx::array> axes = {};  // [pairs] int32, each below positions' axes

  int tokens() const { return positions.shape(-1); }
  int pairs() const { return inverse_frequencies.shape(0); }
};

// Aborts unless the arrays fit one another and `tokens` rows of heads of `head_dim`.
void check_rope(const RopeArrays& rope, int tokens, int head_dim);

// Appends the arrays to a primitive's inputs. They must be the last ones.
void add_rope_inputs(const RopeArrays& rope, std::vector<mx::array>& inputs);

// The arrays that add_rope_inputs() appended. inputs: from the first of them to the last input.
RopeArrays rope_of_inputs(std::span<const mx::array> inputs);

// For the kernels. Reads the arrays' addresses, so they must be available.
cpu::RopeJob rope_job(const RopeArrays& rope, float magnitude);

}  // namespace octavo

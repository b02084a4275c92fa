// image_positions.h - the positions of the rotation in a prompt with images (M-RoPE). No MLX.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "scheduler/prompt_image.h"

namespace octavo {

// Time, height and width.
using RopePosition = std::array<int32_t, 3>;

// Of the token at `index`. Text counts on; an image's rows have one time and the place in its grid;
// the token after it continues past the larger of its sides. `images`: in the prompt's order.
RopePosition rope_position(std::span<const PromptImage> images, int index);

}  // namespace octavo

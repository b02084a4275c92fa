// qwen_axes.h - the three axes of positions in Qwen models that take images. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/config.h"

namespace octavo {

// RopePlan::axes of `pairs` pairs. `sections`: pairs of time, height and width, if the config does not
// have mrope_section.
std::vector<int32_t> qwen_rope_axes(const Config& config, size_t pairs, std::vector<int> sections);

}  // namespace octavo

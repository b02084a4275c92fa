// weights.h (metal) - a packed weight's format as the function constants of weights.msl.
#pragma once

#include "kernels/metal/launch.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::metal {

void set_format(Launch& launch, const PackedLayout& layout);

// Whether one pipeline reads both.
bool have_one_format(const PackedLayout& a, const PackedLayout& b);

}  // namespace octavo::metal

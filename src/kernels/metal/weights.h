// weights.h (metal) - passes the format of a packed weight to weights.msl as function constants.
#pragma once

#include "kernels/metal/launch.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::metal {

void set_format(Launch& launch, const PackedLayout& layout);

// Whether one pipeline can read both.
bool have_one_format(const PackedLayout& a, const PackedLayout& b);

}  // namespace octavo::metal

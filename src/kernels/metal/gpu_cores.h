// gpu_cores.h (metal) - estimates the number of GPU cores, which Metal does not report.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo::metal {

// From the last letter of Metal's name for the architecture, such as "applegpu_g15s": the size of
// the chip, not its generation. Unknown names count as 40 cores.
int32_t cores_of(std::string_view architecture);

// Of this machine's GPU; 40 without one.
int32_t gpu_cores();

}  // namespace octavo::metal

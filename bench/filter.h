// filter.h - which cases of a bench the user asked for. No MLX.
#pragma once

#include <string_view>

namespace octavo::bench {

// Whether every word of `filter` occurs in `label` ("linear 1024x3072 M=1 bfloat16"). A number is
// matched whole: "M=1" is not in "M=16". An empty filter wants everything.
bool matches_filter(std::string_view label, std::string_view filter);

}  // namespace octavo::bench

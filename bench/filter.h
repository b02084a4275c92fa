// filter.h - selects the cases of a benchmark. No MLX.
#pragma once

#include <string_view>

namespace octavo::bench {

// Whether every word of `filter` occurs in `label` ("linear 1024x3072 M=1 bfloat16"). A number is
// matched as a whole: "M=1" does not match "M=16". An empty filter matches everything.
bool matches_filter(std::string_view label, std::string_view filter);

}  // namespace octavo::bench

// nearest_names.h - "did you mean": for the message about a name that is not there.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/format/tensor_view.h"

namespace octavo {

// The up to `count` tensor names with the fewest edits from `name`, nearest first.
std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const TensorView> tensors, size_t count);

}  // namespace octavo

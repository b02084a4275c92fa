// nearest_names.h - "did you mean": for the message about a name that is not there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// The up to `count` names with the fewest edits from `name`, nearest first; of equally near ones
// the first in the alphabet.
std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const std::string> known, size_t count);

}  // namespace octavo

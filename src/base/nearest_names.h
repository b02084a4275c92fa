// nearest_names.h - suggestions for error messages about unknown names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// The Levenshtein distance of the first 160 bytes.
size_t edits_between(std::string_view a, std::string_view b);

// Returns up to `count` of the `known` names with the smallest edit distance to `name`, nearest
// first; ties are in alphabetical order.
std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const std::string> known, size_t count);

}  // namespace octavo

// weight_map.h - model.safetensors.index.json: which file of a checkpoint holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// Maps file names to tensors. File names must be plain names that end in .safetensors, so that they
// cannot lead out of the folder. Throws SetupError with `file_name`.
std::map<std::string, std::vector<std::string>> parse_weight_map(std::string_view json,
                                                                 std::string_view file_name);

}  // namespace octavo

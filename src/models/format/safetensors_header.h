// safetensors_header.h - parses the JSON header of a .safetensors file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/format/tensor_type.h"

namespace octavo {

struct SafetensorsEntry {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;       // no dimension is negative
  std::array<uint64_t, 2> offsets;  // begin and end, unchecked
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // names are unique
  std::map<std::string, std::string> metadata;
};

// Throws SetupError with `file_name`.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::string_view file_name);

}  // namespace octavo

// safetensors.h - reads the header of a .safetensors file, trusting nothing in it.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/format/tensor_view.h"

namespace octavo {

struct Safetensors {
  std::vector<TensorView> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// The tensors point into `file`. Throws SetupError, whose message starts with `file_name`, if the
// file violates the format; in particular the data must fill the rest of the file without gaps or
// overlaps.
Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view file_name);

}  // namespace octavo

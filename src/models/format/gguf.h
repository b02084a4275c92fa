// gguf.h - reads the header of a GGUF file (version 2 or 3, little-endian), trusting nothing in it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "models/format/gguf_metadata.h"
#include "models/format/tensor_view.h"

namespace octavo {

struct GgufFile {
  Gguf metadata;
  std::vector<TensorView> tensors;  // in the order of their data
};

// Metadata and tensors point into `file`. Throws SetupError, whose message starts with `file_name`,
// if the file is damaged or has an unsupported tensor type.
GgufFile parse_gguf(std::span<const std::byte> file, std::string_view file_name);

}  // namespace octavo

// gguf_split.h - GGUF files that were split into pieces: name-00001-of-00003.gguf.
#pragma once

#include <filesystem>
#include <vector>

#include "models/format/gguf_metadata.h"

namespace octavo {

// All pieces of the split file that `file` belongs to, in order; only `file` if its name is not
// that of a piece. Throws SetupError if a piece is missing.
std::vector<std::filesystem::path> gguf_pieces(const std::filesystem::path& file);

// Throws SetupError unless the metadata says that this is piece `index` (from 0) of `count`.
void check_gguf_piece(const Gguf& metadata, size_t index, size_t count);

}  // namespace octavo

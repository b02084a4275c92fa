// format_codes.h - how each weight format stores its codes: bits, groups, zero point, and the codes
// of a row. No MLX.
#pragma once

#include <cstdint>

#include "kernels/weights/gguf_blocks.h"
#include "kernels/weights/packed_weight.h"

namespace octavo {

struct FormatCodes {
  int bits;  // 0: not quantised
  int group_size;
  int zero;
  ScaleKind scales;
};
FormatCodes codes_of(const WeightView& source);

// The codes of one source row in input order.
void read_codes(const WeightView& source, int64_t row, uint8_t* out);

// The blocks of one source row of a GGUF format.
template <typename Block>
const Block* source_blocks(const WeightView& source, int64_t row) {
  return reinterpret_cast<const Block*>(source.data + row * source.row_bytes());
}

}  // namespace octavo
